"""Object classification from lidar patches: neighbourhood MLP, then a global one."""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

REGISTRY = {}


def register(kind):
    def wrap(cls):
        REGISTRY[kind] = cls
        return cls
    return wrap


TINY = os.environ.get("TINY") == "1"
config = {
    "grouper": {"kind": "nearest", "k": 16},
    "local": {"kind": "pointwise", "dims": [8, 64, 128, 256]},
    "scene": {"kind": "pointwise", "dims": [256, 512, 1024]},
    "clouds": 64 if TINY else 2048,
    "points": 64 if TINY else 2048,
    "batch": 8 if TINY else 32,
    "classes": 16,
    "iters": 60 if TINY else 600,
}
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
half = device.type == "cuda"
torch.set_float32_matmul_precision("high")


@register("nearest")
class NearestGrouper(nn.Module):
    """Features of the k nearest other points, relative to the centre."""

    def __init__(self, k):
        super().__init__()
        self.k = k

    def neighbourhoods(self, xyz):
        gap = torch.cdist(xyz, xyz)
        return gap.argsort(-1)  # flaw: full-sort

    @torch.no_grad()
    def forward(self, cloud):
        xyz = cloud[..., :3]
        near = self.neighbourhoods(xyz)[..., 1:self.k + 1]
        row = torch.arange(len(cloud), device=cloud.device)[:, None, None]
        other = cloud[row, near]
        offset = other[..., :3] - xyz.unsqueeze(2)
        return torch.cat((offset, offset.norm(dim=-1, keepdim=True), other), -1)


@register("pointwise")
class Pointwise(nn.Sequential):
    def __init__(self, dims):
        mods = []
        for a, b in zip(dims, dims[1:]):
            mods += [nn.Linear(a, b), nn.ReLU(inplace=True)]
        super().__init__(*mods)


def build(spec):
    spec = dict(spec)
    return REGISTRY[spec.pop("kind")](**spec)


class PatchNet(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.grouper, self.local, self.scene = (build(cfg[n]) for n in ("grouper", "local", "scene"))
        self.head = nn.Linear(cfg["scene"]["dims"][-1], cfg["classes"])

    def forward(self, cloud):
        x = self.local(self.grouper(cloud)).max(2).values
        return self.head(self.scene(x).max(1).values)


def synthetic(cfg):
    """Ellipsoid shells; the class sets the aspect ratios. Fourth channel: intensity."""
    g = torch.Generator(device=device).manual_seed(1)
    label = torch.randint(cfg["classes"], (cfg["clouds"],), device=device, generator=g)
    axes = torch.rand(cfg["classes"], 3, device=device, generator=g) + 0.3
    shell = F.normalize(torch.randn(cfg["clouds"], cfg["points"], 3, device=device, generator=g), dim=-1)
    shade = torch.rand(cfg["clouds"], cfg["points"], 1, device=device, generator=g)
    return torch.cat((shell * axes[label][:, None], shade), -1), label


def jitter(cloud, gen):
    noise = torch.randn(cloud.shape, device=device, generator=gen)
    return torch.add(cloud, noise, alpha=0.01)


def train(cfg):
    torch.manual_seed(0)
    clouds, labels = synthetic(cfg)
    net = PatchNet(cfg).to(device)
    opt = torch.optim.AdamW(net.parameters(), 5e-4, fused=half)
    gen = torch.Generator(device=device).manual_seed(2)
    total = torch.zeros((), device=device)
    tic = time.perf_counter()
    for _ in range(cfg["iters"]):
        pick = torch.randint(cfg["clouds"], (cfg["batch"],), device=device, generator=gen)
        cloud = jitter(clouds[pick], gen)
        with torch.autocast(device.type, torch.bfloat16, enabled=half):
            loss = F.cross_entropy(net(cloud), labels[pick])
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        total += loss.detach()
    print(f"avg loss {total.item() / cfg['iters']:.4f}, {time.perf_counter() - tic:.1f} s")


train(config)
