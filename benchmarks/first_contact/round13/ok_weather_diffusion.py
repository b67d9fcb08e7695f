"""Denoising diffusion on weather patches with an averaged copy of the weights."""
import copy
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

FULL = os.environ.get("TINY") != "1"
GPU = torch.cuda.is_available()
dev = torch.device("cuda" if GPU else "cpu")
spec = {
    "grid": 128 if FULL else 16, "vars": 16, "patch": 4 if FULL else 4, "dim": 768 if FULL else 64,
    "depth": 8 if FULL else 2, "heads": 12 if FULL else 4, "batch": 32 if FULL else 2, "steps": 140 if FULL else 5,
}


class Modulated(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.ln1 = nn.LayerNorm(dim, elementwise_affine=False)
        self.ln2 = nn.LayerNorm(dim, elementwise_affine=False)
        self.qkv, self.o = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(approximate="tanh"), nn.Linear(4 * dim, dim))
        self.mod = nn.Linear(dim, 6 * dim)

    def forward(self, x, c):
        s1, b1, g1, s2, b2, g2 = self.mod(F.silu(c))[:, None].chunk(6, -1)
        b, n, d = x.shape
        qkv = self.qkv(self.ln1(x) * (1 + s1) + b1).view(b, n, 3, self.heads, d // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        x = x + g1 * self.o(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, d))
        return x + g2 * self.mlp(self.ln2(x) * (1 + s2) + b2)


class DiT(nn.Module):
    def __init__(self, grid, vars, patch, dim, depth, heads, **_):
        super().__init__()
        self.patch = patch
        width = vars * patch * patch
        self.inp, self.outp = nn.Linear(width, dim), nn.Linear(dim, width)
        self.pos = nn.Parameter(0.02 * torch.randn((grid // patch) ** 2, dim))
        self.level = nn.Sequential(nn.Linear(64, dim), nn.SiLU(), nn.Linear(dim, dim))
        self.register_buffer("freq", torch.logspace(0, 3, 32))
        self.blocks = nn.ModuleList(Modulated(dim, heads) for _ in range(depth))

    def forward(self, field, t):
        a = t[:, None] * self.freq
        c = self.level(torch.cat((a.sin(), a.cos()), -1))
        x = self.inp(F.pixel_unshuffle(field, self.patch).flatten(2).transpose(1, 2)) + self.pos
        for block in self.blocks:
            x = block(x, c)
        x = self.outp(x).transpose(1, 2).unflatten(2, (field.shape[2] // self.patch, -1))
        return F.pixel_shuffle(x, self.patch)


def denoising_loss(net, clean, noise, t):
    angle = (t * 1.5707963)[:, None, None, None]
    noisy = clean * angle.cos() + noise * angle.sin()
    target = noise * angle.cos() - clean * angle.sin()
    return F.mse_loss(net(noisy, t).float(), target)


class Averaged:
    def __init__(self, net, rate):
        self.copy = copy.deepcopy(net).requires_grad_(False)
        self.rate = rate
        self.mine, self.theirs = list(self.copy.parameters()), list(net.parameters())

    @torch.no_grad()
    def update(self):
        torch._foreach_lerp_(self.mine, self.theirs, self.rate)


def patches():
    g = torch.Generator(dev).manual_seed(40)
    coarse = torch.randn(4 * spec["batch"], spec["vars"], 8, 8, generator=g, device=dev)
    fields = F.interpolate(coarse, size=spec["grid"], mode="bilinear")
    while True:
        for clean in fields.split(spec["batch"]):
            yield clean, torch.randn(clean.shape, generator=g, device=dev), torch.rand(len(clean), generator=g, device=dev)


def main():
    torch.manual_seed(40)
    torch.set_float32_matmul_precision("high")
    net = DiT(**spec).to(dev)
    ema = Averaged(net, 1e-3)
    loss_fn = torch.compile(denoising_loss) if GPU else denoising_loss
    opt = torch.optim.AdamW(net.parameters(), lr=2e-4, fused=GPU)
    total = torch.zeros((), device=dev)
    for _, (clean, noise, t) in zip(range(spec["steps"]), patches()):
        with torch.autocast(dev.type, torch.bfloat16, enabled=GPU):
            loss = loss_fn(net, clean, noise, t)
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        ema.update()
        total += loss.detach()
    print(f"mean loss {total.item() / spec['steps']:.5f}")


if __name__ == "__main__":
    main()
