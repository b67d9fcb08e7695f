"""Click model: hashed ids in one table, pooled, then a small network. Plain SGD as in the paper."""
import argparse
import os

import torch
from torch import nn
from torch.nn import functional as F

small = os.environ.get("SMALL") == "1"


class ClickModel(nn.Module):
    def __init__(self, buckets, dim, slots, wide):
        super().__init__()
        self.hashed = nn.Embedding(buckets, dim)  # flaw: dense-embedding-gradient
        nn.init.normal_(self.hashed.weight, std=0.01)
        self.slots, self.dim = slots, dim
        self.deep = nn.Sequential(
            nn.Linear(slots * dim, wide), nn.ReLU(), nn.Linear(wide, wide), nn.ReLU(), nn.Linear(wide, 1)
        )

    def forward(self, ids):
        x = self.hashed(ids)
        return self.deep(x.view(-1, self.slots * self.dim)).squeeze(1)


def get_args():
    p = argparse.ArgumentParser()
    p.add_argument("--buckets", type=int, default=2_000 if small else 8_000_000)
    p.add_argument("--dim", type=int, default=8 if small else 64)
    p.add_argument("--slots", type=int, default=4 if small else 24)
    p.add_argument("--wide", type=int, default=32 if small else 2048)
    p.add_argument("--batch", type=int, default=16 if small else 8192)
    p.add_argument("--steps", type=int, default=30 if small else 120)
    p.add_argument("--lr", type=float, default=0.1)
    return p.parse_args()


def main(a):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(2)
    with device:
        model = ClickModel(a.buckets, a.dim, a.slots, a.wide)
        ids = torch.randint(a.buckets, (16, a.batch, a.slots))
        clicked = (torch.rand(16, a.batch) < 0.1).float()
    sgd = torch.optim.SGD(model.parameters(), lr=a.lr)
    average = torch.zeros((), device=device)
    for step in range(a.steps):
        with torch.autocast(device.type, dtype=torch.bfloat16):
            score = model(ids[step % 16])
        loss = F.binary_cross_entropy_with_logits(score.float(), clicked[step % 16])
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        average.lerp_(loss.detach(), 0.05)
    print("smoothed loss", average.item())


if __name__ == "__main__":
    main(get_args())
