"""Rectified flow in a latent space with a small diffusion transformer."""
import os
from dataclasses import dataclass, replace

import torch
from torch import nn
from torch.nn import functional as F


@dataclass(frozen=True)
class Plan:
    tokens: int = 256
    channels: int = 16
    dim: int = 768
    heads: int = 12
    depth: int = 6
    batch: int = 48
    classes: int = 100
    steps: int = 80


class Layer(nn.Module):
    def __init__(self, plan: Plan):
        super().__init__()
        self.heads = plan.heads
        d = plan.dim
        self.norm_a, self.norm_m = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.out = nn.Linear(d, 3 * d, bias=False), nn.Linear(d, d, bias=False)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(approximate="tanh"), nn.Linear(4 * d, d))

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(self.norm_a(x)).view(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, d))
        return x + self.mlp(self.norm_m(x))


class FlowTransformer(nn.Module):
    """Time and class enter as two extra tokens in front of the latents."""

    def __init__(self, plan: Plan):
        super().__init__()
        self.read = nn.Linear(plan.channels, plan.dim)
        self.label = nn.Embedding(plan.classes, plan.dim)
        self.time = nn.Sequential(nn.Linear(64, plan.dim), nn.SiLU(), nn.Linear(plan.dim, plan.dim))
        self.place = nn.Parameter(torch.randn(plan.tokens, plan.dim) * 0.02)
        self.register_buffer("freq", torch.exp(torch.linspace(0, 6, 32)))
        self.layers = nn.Sequential(*(Layer(plan) for _ in range(plan.depth)))
        self.norm, self.write = nn.LayerNorm(plan.dim), nn.Linear(plan.dim, plan.channels)

    def forward(self, z, t, y):
        a = t[:, None] * self.freq
        prefix = torch.stack((self.time(torch.cat((a.sin(), a.cos()), 1)), self.label(y).to(z.dtype)), 1)
        x = torch.cat((prefix, self.read(z) + self.place), 1)
        return self.write(self.norm(self.layers(x)[:, 2:]))


def main(plan: Plan):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = FlowTransformer(plan).to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=device.type == "cuda")
    latents = torch.randn(plan.batch * 20, plan.tokens, plan.channels, device=device)
    labels = torch.randint(plan.classes, (len(latents),), device=device)
    for step in range(plan.steps):
        pick = torch.randint(len(latents), (plan.batch,), device=device)
        data, noise = latents[pick], torch.randn(plan.batch, plan.tokens, plan.channels, device=device)
        t = torch.rand(plan.batch, device=device)
        with torch.autocast(device.type, torch.bfloat16):
            v = model(torch.lerp(noise, data, t[:, None, None]), t, labels[pick])
        loss = F.mse_loss(v.float(), data - noise)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 20 == 0:
            print(step, f"{loss.item():.4f}")


if __name__ == "__main__":
    p = Plan()
    if os.environ.get("SMALL"):
        p = replace(p, tokens=16, channels=8, dim=32, heads=2, depth=2, batch=2, steps=30)
    main(p)
