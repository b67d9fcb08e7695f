"""Short support tickets, a few hundred of which are long."""
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

PAD, MAX_LEN, VOCAB = 0, 512, 8192
rng = random.Random(9)


def tickets(n):
    for _ in range(n):
        size = min(int(rng.lognormvariate(3.6, 0.5)) + 4, 180)
        yield [rng.randint(1, VOCAB - 1) for _ in range(size)]


def encode(rows):
    return torch.tensor([r[:MAX_LEN] + [PAD] * (MAX_LEN - len(r)) for r in rows])  # flaw: none-yet(padding)


class Classifier(nn.Module):
    def __init__(self, d=768, n=4, classes=24):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, d, padding_idx=PAD)
        self.norms = nn.ModuleList(nn.LayerNorm(d) for _ in range(n))
        self.convs = nn.ModuleList(nn.Linear(3 * d, d) for _ in range(n))
        self.ff = nn.ModuleList(nn.Sequential(nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d)) for _ in range(n))
        self.out = nn.Linear(d, classes)

    def forward(self, ids):
        x = self.emb(ids)
        for norm, conv, ff in zip(self.norms, self.convs, self.ff):
            h = norm(x)
            h = conv(torch.cat([F.pad(h, (0, 0, 1, 0))[:, :-1], h, F.pad(h, (0, 0, 0, 1))[:, 1:]], -1))
            x = x + ff(F.gelu(h))
        keep = (ids != PAD).unsqueeze(-1)
        return self.out((x * keep).sum(1) / keep.sum(1))


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    batch = 32
    ids = encode(tickets(4096)).to(device)
    labels = torch.randint(0, 24, (4096,), device=device)
    model = Classifier().to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=2e-4, fused=True)
    for step in range(400):
        pick = torch.randint(0, 4096, (batch,), device=device)
        x, y = ids[pick], labels[pick]  # flaw: none-yet(padding)
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = F.cross_entropy(model(x), y)  # flaw: none-yet(padding)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if step % 100 == 0:
            print(step, loss.item())


if __name__ == "__main__":
    main()
