"""Finds the shields in an armorial that look most like a sketched one."""
import os

import torch
from torch import nn
from torch.nn import functional as F

tiny = os.environ.get("TINY") == "1"
SHIELDS = 500 if tiny else 20_000
ROUNDS = 4 if tiny else 120
SKETCHES = 8 if tiny else 64


class Armorial:
    def __init__(self, crests, owners):
        self.crests = F.normalize(crests, dim=1)
        self.owners = owners

    def neighbours(self, codes, count):
        likeness = F.normalize(codes, dim=1) @ self.crests.T
        return likeness.topk(count, dim=1).indices

    def vote(self, codes, count=15):
        return self.owners[self.neighbours(codes, count)].mode(1).values


@torch.inference_mode()
def main():
    torch.manual_seed(2)
    encoder = nn.Sequential(nn.Linear(400, 256), nn.ReLU(), nn.Linear(256, 64)).eval()
    houses = torch.randn(50, 400)
    owners = torch.randint(0, 50, (SHIELDS,))
    crests = torch.cat([encoder(houses[part] + 0.8 * torch.randn(len(part), 400)) for part in owners.split(1000)])
    armorial = Armorial(crests, owners)
    right = torch.zeros((), dtype=torch.long)
    for _ in range(ROUNDS):
        truth = torch.randint(0, 50, (SKETCHES,))
        sketch = houses[truth] + 1.5 * torch.randn(SKETCHES, 400)
        right += (armorial.vote(encoder(sketch)) == truth).sum()
    print(f"houses recognised: {right.item()} of {ROUNDS * SKETCHES}")


main()
