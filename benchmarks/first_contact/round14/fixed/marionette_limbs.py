"""Motion capture clean-up: every joint of the skeleton has its own small layers, a trunk mixes them."""
import os
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn

cfg = SimpleNamespace(joints=52, markers=16, size=64, trunk=4096, blocks=3, poses=6144, steps=260)
if os.environ.get("TINY") == "1":
    cfg = SimpleNamespace(joints=5, markers=16, size=8, trunk=32, blocks=2, poses=16, steps=5)
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.backends.cuda.matmul.allow_tf32 = True


class LimbwiseLinear(nn.Module):
    def __init__(self, joints, cin, cout):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(joints, cin, cout) * cin**-0.5)
        self.offset = nn.Parameter(torch.zeros(joints, cout))

    def forward(self, pose):
        return torch.baddbmm(self.offset.unsqueeze(1), pose.transpose(0, 1), self.weight).transpose(0, 1)


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.limbs = LimbwiseLinear(c.joints, c.size, c.size)
        self.norm = nn.LayerNorm(c.size)
        self.trunk = nn.Sequential(nn.Linear(c.joints * c.size, c.trunk), nn.GELU(), nn.Linear(c.trunk, c.joints * c.size))

    def forward(self, pose):
        pose = pose + F.gelu(self.limbs(self.norm(pose)))
        return pose + self.trunk(pose.flatten(1)).view_as(pose)


class Marionette(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.lift = LimbwiseLinear(c.joints, c.markers, c.size)
        self.blocks = nn.Sequential(*(Block(c) for _ in range(c.blocks)))
        self.drop = LimbwiseLinear(c.joints, c.size, c.markers)

    def forward(self, markers):
        return self.drop(self.blocks(self.lift(markers)))


def captured(c):
    g = torch.Generator(DEVICE).manual_seed(8)
    takes = torch.randn(c.poses * 4, c.joints, c.markers, generator=g, device=DEVICE)
    takes = takes.cumsum(1) / 4
    while True:
        for take in takes.split(c.poses):
            yield take, take + 0.1 * torch.randn(take.shape, generator=g, device=DEVICE)


torch.manual_seed(4)
puppet = Marionette(cfg).to(DEVICE)
opt = torch.optim.AdamW(puppet.parameters(), lr=5e-4, fused=True)
error = torch.zeros((), device=DEVICE)
takes = captured(cfg)
step = 0
while step < cfg.steps:
    clean, jittered = next(takes)
    with torch.autocast(DEVICE.type, torch.bfloat16):
        loss = F.smooth_l1_loss(puppet(jittered).float(), clean)
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    error += loss.detach()
    step += 1
print(f"joint error {error.item() / step:.4f}")
