"""Latent diffusion of garment images (transformer, rectified flow) with an averaged copy of the weights."""
import contextlib
import copy
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Hyper:
    tokens: int = 256
    latent: int = 64
    dim: int = 768
    heads: int = 12
    depth: int = 6
    styles: int = 64
    batch: int = 128
    steps: int = 120
    decay: float = 0.999


TINY = Hyper(tokens=16, latent=8, dim=32, heads=2, depth=1, styles=4, batch=4, steps=4)


class Block(nn.Module):
    def __init__(self, h):
        super().__init__()
        self.heads = h.heads
        self.qkv, self.out = nn.Linear(h.dim, 3 * h.dim), nn.Linear(h.dim, h.dim)
        self.up, self.down = nn.Linear(h.dim, 4 * h.dim), nn.Linear(4 * h.dim, h.dim)
        self.condition = nn.Linear(h.dim, 6 * h.dim)
        nn.init.normal_(self.condition.weight, std=0.02)

    def forward(self, x, c):
        a1, b1, g1, a2, b2, g2 = self.condition(c).unsqueeze(1).chunk(6, -1)
        y = F.layer_norm(x, x.shape[-1:]) * (1 + a1) + b1
        q, k, v = self.qkv(y).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        x = x + g1 * self.out(y)
        y = F.layer_norm(x, x.shape[-1:]) * (1 + a2) + b2
        return x + g2 * self.down(F.gelu(self.up(y), approximate="tanh"))


class GarmentDiT(nn.Module):
    def __init__(self, h):
        super().__init__()
        self.inlet, self.outlet = nn.Linear(h.latent, h.dim), nn.Linear(h.dim, h.latent)
        self.places = nn.Parameter(torch.randn(h.tokens, h.dim) * 0.02)
        self.style = nn.Embedding(h.styles, h.dim)
        self.clock = nn.Sequential(nn.Linear(64, h.dim), nn.SiLU(), nn.Linear(h.dim, h.dim))
        self.blocks = nn.ModuleList(Block(h) for _ in range(h.depth))
        self.register_buffer("waves", torch.logspace(0, 3, 32))

    def forward(self, x, t, style):
        phase = t[:, None] * self.waves
        c = F.silu(self.clock(torch.cat([phase.sin(), phase.cos()], 1)) + self.style(style))
        x = self.inlet(x) + self.places.to(torch.bfloat16)
        for block in self.blocks:
            x = block(x, c)
        return self.outlet(x)


class Average:
    """Exponential moving average of the parameters, all of them in one call."""

    def __init__(self, model, decay):
        self.model = copy.deepcopy(model).requires_grad_(False)
        self.mine, self.theirs = list(self.model.parameters()), list(model.parameters())
        self.decay = decay

    @torch.no_grad()
    def update(self):
        torch._foreach_lerp_(self.mine, self.theirs, 1 - self.decay)


@contextlib.contextmanager
def mixed(device):
    with torch.autocast(device.type, torch.bfloat16):
        yield


def main():
    gpu = torch.cuda.is_available()
    device = torch.device("cuda" if gpu else "cpu")
    h = Hyper() if gpu else TINY
    torch.manual_seed(110)
    model = GarmentDiT(h).to(device)
    average = Average(model, h.decay)
    if gpu:
        for block in model.blocks:
            block.compile()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01, fused=True)
    latents = torch.randn(16 * h.batch, h.tokens, h.latent, device=device)
    styles = torch.randint(0, h.styles, (16 * h.batch,), device=device)
    losses = torch.zeros(h.steps, device=device)
    for step in range(h.steps):
        rows = torch.randint(len(latents), (h.batch,), device=device)
        clean, noise = latents[rows], torch.randn(h.batch, h.tokens, h.latent, device=device)
        t = torch.rand(h.batch, device=device)
        with mixed(device):
            velocity = model(torch.lerp(noise, clean, t[:, None, None]), t, styles[rows])
        loss = F.mse_loss(velocity.float(), clean - noise)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        average.update()
        losses[step] = loss.detach()
    losses = losses.cpu()
    print(f"loss {losses[0].item():.4f} -> {losses[-1].item():.4f}")


if __name__ == "__main__":
    main()
