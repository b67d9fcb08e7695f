"""Identifies joint stiffness of a biped: a learned spring model is unrolled along recorded gaits."""
import os
from dataclasses import dataclass
import torch
from torch import nn
import torch.nn.functional as F


@dataclass
class GaitConfig:
    joints: int = 12
    horizon: int = 60
    walks: int = 64
    rounds: int = 125
    rate: float = 3e-3
    trace_gradients: bool = False
    seed: int = 12


class SpringLegs(nn.Module):
    def __init__(self, joints):
        super().__init__()
        self.stiff = nn.Parameter(torch.ones(joints))
        self.damp = nn.Parameter(torch.full((joints,), 0.3))
        self.couple = nn.Linear(joints, joints)

    def forward(self, angle, speed, torque, span=0.05):
        push = torque - self.stiff * angle.sin() - self.damp * speed + self.couple(angle).tanh()
        speed = torch.add(speed, push, alpha=span)
        return torch.add(angle, speed, alpha=span), speed


class Identifier:
    def __init__(self, config):
        self.config = config
        torch.manual_seed(config.seed)
        self.legs = SpringLegs(config.joints)
        self.opt = torch.optim.AdamW(self.legs.parameters(), lr=config.rate, fused=True)
        torch.autograd.set_detect_anomaly(config.trace_gradients)

    def unroll(self, angle, torques):
        speed, seen = torch.zeros_like(angle), []
        for torque in torques:
            angle, speed = self.legs(angle, speed, torque)
            seen.append(angle)
        return torch.stack(seen)

    def round(self):
        c = self.config
        angle = 0.3 * torch.randn(c.walks, c.joints)
        torques = torch.randn(c.horizon, c.walks, c.joints)
        measured = angle + torques.cumsum(0) * 0.02
        loss = F.mse_loss(self.unroll(angle, torques.unbind(0)), measured)
        self.opt.zero_grad(set_to_none=True)
        loss.backward()
        self.opt.step()
        return loss

    def run(self):
        for r in range(self.config.rounds):
            loss = self.round()
            if r % 20 == 0:
                print(r, f"{loss.item():.5f}")
        print("stiffness", f"{self.legs.stiff.mean().item():.5f}", f"{loss.item():.5f}")


if __name__ == "__main__":
    Identifier(GaitConfig(horizon=5, walks=4, rounds=3) if os.environ.get("TINY") else GaitConfig()).run()
