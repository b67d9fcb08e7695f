"""Learns muscle excitations that produce wanted joint torques (Hill-type muscles)."""
import os
import torch
from torch import nn

TINY = os.environ.get("TINY") == "1"
device = "cuda" if torch.cuda.is_available() else "cpu"


class HillMuscles(nn.Module):
    def __init__(self, muscles, joints):
        super().__init__()
        g = torch.Generator().manual_seed(1)
        self.register_buffer("strongest", torch.rand(muscles, generator=g) + 0.5)
        self.register_buffer("rest", torch.rand(muscles, generator=g) * 0.2 + 0.9)
        self.register_buffer("arms", torch.randn(muscles, joints, generator=g) / muscles ** 0.5)

    def pull(self, excitation, length, speed):
        forces = []
        for m, strength in enumerate(self.strongest):  # flaw: python-loop-over-tensor
            stretch = length[:, m] / self.rest[m] - 1  # flaw: python-loop-over-tensor
            active = torch.exp(-stretch.square() / 0.45) * (1 - torch.tanh(speed[:, m]))  # flaw: python-loop-over-tensor
            passive = torch.relu(stretch).square() * 4  # flaw: python-loop-over-tensor
            forces.append(strength * (excitation[:, m] * active + passive))  # flaw: python-loop-over-tensor
        return torch.stack(forces, dim=1)  # flaw: python-loop-over-tensor

    def forward(self, excitation, length, speed):
        return self.pull(excitation, length, speed) @ self.arms


class Cortex(nn.Module):
    def __init__(self, muscles, joints, width):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(joints + 2 * muscles, width), nn.GELU(), nn.Linear(width, width), nn.GELU(),
            nn.Linear(width, width), nn.GELU(), nn.Linear(width, muscles))

    def forward(self, wanted, length, speed):
        return torch.sigmoid(self.net(torch.cat([wanted, length, speed], -1)))


def practise(muscles=8 if TINY else 96, joints=16, width=64 if TINY else 2048, batch=32 if TINY else 8192,
             tries=4 if TINY else 300):
    torch.manual_seed(2)
    body, cortex = HillMuscles(muscles, joints).to(device), Cortex(muscles, joints, width).to(device)
    opt = torch.optim.AdamW(cortex.parameters(), lr=2e-4, fused=True)
    total, k = torch.zeros((), device=device), 0
    while k < tries:
        wanted = torch.randn(batch, joints, device=device)
        length = torch.rand(batch, muscles, device=device) * 0.4 + 0.8
        speed = torch.randn(batch, muscles, device=device) * 0.3
        with torch.autocast(device, torch.bfloat16):
            excitation = cortex(wanted, length, speed)
            torque = body(excitation.float(), length, speed)
        loss = nn.functional.mse_loss(torque.float(), wanted)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.detach()
        k += 1
    print(f"mean error {total.item() / tries:.4f}")


practise()
