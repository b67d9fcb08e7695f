"""Reconstructs CT volumes slice by slice: each slice starts from the state of the one below it."""
import os

import torch
from torch import nn

TINY = os.environ.get("TINY") == "1"
BATCH, SIDE, SLICES, VOLUMES, WIDTH = (2, 32, 6, 3, 8) if TINY else (8, 512, 96, 170, 32)
torch.backends.cudnn.benchmark = True


class SliceNet(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.mix = nn.Conv2d(width + 8, width, 3, padding=1)
        self.refine = nn.Conv2d(width, width, 3, padding=1)
        self.act = nn.SiLU(inplace=True)
        self.density = nn.Conv2d(width, 2, 1)

    def forward(self, projection, state):
        state = self.act(self.mix(torch.cat([projection, state], dim=1)))
        state = self.act(self.refine(state))
        return state, self.density(state)


class Volume:
    """The slices that are done, from the bottom up."""

    def __init__(self):
        self.planes = None  # flaw: cat-in-loop

    def push(self, plane):
        plane = plane.unsqueeze(1)
        self.planes = plane if self.planes is None else torch.cat((self.planes, plane), dim=1)  # flaw: cat-in-loop

    def finished(self):
        return self.planes  # flaw: cat-in-loop


@torch.inference_mode()
def reconstruct(net, projections, state):
    volume = Volume()
    for projection in projections:
        state, density = net(projection, state)
        volume.push(density.float())
    return volume.finished()


def main():
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    net = SliceNet(WIDTH).to(device, torch.bfloat16, memory_format=torch.channels_last).eval()
    projections = [
        torch.randn(BATCH, 8, SIDE, SIDE, device=device, dtype=torch.bfloat16).to(memory_format=torch.channels_last)
        for _ in range(8)
    ]
    start = torch.zeros(BATCH, WIDTH, SIDE, SIDE, device=device, dtype=torch.bfloat16)
    start = start.to(memory_format=torch.channels_last)
    masses = []
    for number in range(VOLUMES):
        order = [projections[(number + z) % 8] for z in range(SLICES)]
        masses.append(reconstruct(net, order, start).mean())
    print("mean density", f"{torch.stack(masses).mean().item():.5f}")


main()
