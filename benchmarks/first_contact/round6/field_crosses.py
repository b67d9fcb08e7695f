import os

import torch
import torch.nn.functional as F
from torch import nn


def sizes():
    if os.environ.get("SMALL"):
        return dict(fields=4, vocab=200, dim=8, batch=16, hidden=32, steps=30)
    return dict(fields=32, vocab=20_000, dim=64, batch=8192, hidden=1024, steps=80)


class Crosses(nn.Module):
    """Inner products of all pairs of fields."""

    def __init__(self, fields):
        super().__init__()
        self.fields = fields
        self.out_features = fields * (fields - 1) // 2

    def forward(self, e):
        out = []  # flaw: python-loop-over-tensor
        for i in range(self.fields):  # flaw: python-loop-over-tensor
            for j in range(i + 1, self.fields):  # flaw: python-loop-over-tensor
                out.append((e[:, i] * e[:, j]).sum(-1))  # flaw: python-loop-over-tensor
        return torch.stack(out, 1)  # flaw: python-loop-over-tensor


class Ranker(nn.Module):
    def __init__(self, fields, vocab, dim, hidden):
        super().__init__()
        self.embed = nn.Embedding(fields * vocab, dim)
        self.register_buffer("offset", torch.arange(fields) * vocab)
        self.cross = Crosses(fields)
        wide = self.cross.out_features + fields * dim
        self.top = nn.Sequential(
            nn.Linear(wide, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1)
        )

    def forward(self, ids):
        e = self.embed(ids + self.offset)
        return self.top(torch.cat([self.cross(e), e.flatten(1)], 1)).squeeze(1)


def impressions(device, fields, vocab, batch, steps, **_):
    g = torch.Generator(device).manual_seed(0)
    for _ in range(steps):
        ids = torch.randint(vocab, (batch, fields), device=device, generator=g)
        yield ids, (ids[:, 0] < ids[:, 1]).float()


def main():
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    s = sizes()
    net = Ranker(s["fields"], s["vocab"], s["dim"], s["hidden"]).to(device)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
    for i, (ids, clicked) in enumerate(impressions(device, **s)):
        with torch.autocast(device, dtype=torch.bfloat16):
            score = net(ids)
        loss = F.binary_cross_entropy_with_logits(score.float(), clicked)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if i % 20 == 0:
            print(i, f"logloss {loss.item():.4f}")


main()
