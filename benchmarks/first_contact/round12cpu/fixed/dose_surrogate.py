"""Neural surrogate of a radiation dose engine; thread counts come from the cluster's job file."""
import os

import torch
from torch import nn

JOB = {"threads": os.cpu_count(), "steps_file": None}
STEPS = 120


class DoseNet(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.beam = nn.Linear(8, width)
        self.patient = nn.Conv1d(3, width, 5, padding=2)
        self.mix = nn.Sequential(nn.Conv1d(width, width, 3, padding=1), nn.SiLU(), nn.Conv1d(width, 1, 1))

    def forward(self, beam, density):
        h = self.patient(density) * torch.sigmoid(self.beam(beam)).unsqueeze(-1)
        return nn.functional.softplus(self.mix(h)).squeeze(1)


def phantom(n, gen):
    beam = torch.rand(n, 8, generator=gen)
    density = torch.rand(n, 3, 128, generator=gen)
    depth = density[:, 0].cumsum(1) / 64
    return beam, density, beam[:, :1] * torch.exp(-depth * (1 + beam[:, 1:2]))


def main():
    torch.set_num_threads(min(JOB["threads"], len(os.sched_getaffinity(0))))
    torch.manual_seed(1)
    gen = torch.Generator().manual_seed(1)
    net = DoseNet()
    opt = torch.optim.Adam(net.parameters(), lr=1e-3, fused=True)
    for step in range(1, STEPS + 1):
        beam, density, dose = phantom(4, gen)
        loss = nn.functional.mse_loss(net(beam, density), dose)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 60 == 0:
            print(f"step {step}: mse {loss.item():.6f}")


main()
