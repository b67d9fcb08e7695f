import os

import torch
from torch import nn
import torch.nn.functional as F

SMALL = os.environ.get("SMALL") == "1"
FIELDS = 4 if SMALL else 24
PER_FIELD = 100 if SMALL else 100_000
DENSE = 8 if SMALL else 16
EMB = 8 if SMALL else 64
BATCH = 32 if SMALL else 16384
STEPS = 30 if SMALL else 100
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Fields(nn.Module):
    """All categorical columns share one table; a column's ids start at its own offset."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(FIELDS * PER_FIELD, EMB, sparse=True, device=device)
        nn.init.normal_(self.table.weight, std=0.02)
        self.register_buffer("offset", torch.arange(FIELDS, device=device) * PER_FIELD)

    def forward(self, ids):
        return self.table(ids + self.offset)


class Ranker(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fields = Fields()
        self.dense = nn.Sequential(nn.Linear(DENSE, 256), nn.ReLU(inplace=True), nn.Linear(256, EMB))
        self.top = nn.Sequential(
            nn.Linear((FIELDS + 1) * EMB, width), nn.ReLU(inplace=True),
            nn.Linear(width, width), nn.ReLU(inplace=True),
            nn.Linear(width, width // 2), nn.ReLU(inplace=True),
            nn.Linear(width // 2, 1))

    def forward(self, ids, numbers):
        e = self.fields(ids).to(torch.bfloat16).flatten(1)
        return self.top(torch.cat([e, self.dense(numbers).to(e.dtype)], dim=1)).squeeze(1)


def make_log(rows):
    ids = (torch.rand(rows, FIELDS, device=device).square() * PER_FIELD).long()
    numbers = torch.randn(rows, DENSE, device=device)
    clicked = (numbers[:, 0] + 0.3 * torch.randn(rows, device=device) > 0.8).float()
    return ids, numbers, clicked


def main():
    torch.manual_seed(12)
    net = Ranker(64 if SMALL else 2048).to(device)
    table = list(net.fields.parameters())
    known = set(map(id, table))
    rest = [p for p in net.parameters() if id(p) not in known]
    opt_table = torch.optim.SGD(table, lr=0.05)
    opt_rest = torch.optim.AdamW(rest, lr=1e-3, fused=True)
    ids, numbers, clicked = make_log(BATCH * 8)
    smooth = torch.zeros((), device=device)
    for step in range(STEPS):
        part = slice((step % 8) * BATCH, (step % 8 + 1) * BATCH)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            score = net(ids[part], numbers[part])
        loss = F.binary_cross_entropy_with_logits(score.float(), clicked[part])
        loss.backward()
        opt_table.step()
        opt_rest.step()
        opt_table.zero_grad()
        opt_rest.zero_grad()
        smooth.lerp_(loss.detach(), 0.05)
    print("smoothed loss", smooth.item())


if __name__ == "__main__":
    main()
