"""Slip detection on tactile arrays of a robot's fingertips: recurrent features over a window of readings."""
from dataclasses import dataclass, field

import torch
from torch import nn


@dataclass
class Run:
    taxels: int = 48
    length: int = 40
    hidden: int = 96
    batch: int = 64
    steps: int = 420
    lr: float = 2e-3
    seed: int = 19
    losses: list = field(default_factory=list)


def grasps(run, count, generator):
    """Pressure readings; during a slip a vibration runs over the taxels for the rest of the window."""
    pressure = torch.rand(count, 1, run.taxels, generator=generator)
    noise = 0.3 * torch.randn(count, run.length, run.taxels, generator=generator)
    slips = torch.rand(count, generator=generator) < 0.5
    onset = torch.randint(5, run.length - 10, (count, 1), generator=generator)
    time = torch.arange(run.length)[None]
    active = slips[:, None] & (time >= onset)
    wave = torch.sin(1.7 * time[..., None] + torch.linspace(0, 6, run.taxels))
    readings = pressure + noise + 0.25 * active[..., None] * wave
    return readings, active.float()


class SlipNet(nn.Module):
    def __init__(self, run):
        super().__init__()
        self.enter = nn.Linear(run.taxels, run.hidden)
        self.memory = nn.GRU(run.hidden, run.hidden, batch_first=True)
        self.leave = nn.Linear(run.hidden, 1)

    def forward(self, readings):
        states, _ = self.memory(torch.relu(self.enter(readings)))
        return self.leave(states)[..., 0]


def main():
    run = Run()
    torch.manual_seed(run.seed)
    generator = torch.Generator().manual_seed(run.seed)
    readings, active = grasps(run, 4000, generator)
    net = SlipNet(run)
    optimizer = torch.optim.AdamW(net.parameters(), lr=run.lr, fused=True)
    criterion = nn.BCEWithLogitsLoss()
    for step in range(run.steps):
        rows = torch.randint(len(readings), (run.batch,), generator=generator)
        loss = criterion(net(readings[rows]), active[rows])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        if step % 60 == 59:
            run.losses.append(loss.item())
            print(f"step {step + 1}: {run.losses[-1]:.4f}", flush=True)
    with torch.inference_mode():
        fresh, truth = grasps(run, 500, generator)
        right = ((net(fresh) > 0) == (truth > 0.5)).float().mean()
    print(f"readings judged correctly: {right:.3f}")


if __name__ == "__main__":
    main()
