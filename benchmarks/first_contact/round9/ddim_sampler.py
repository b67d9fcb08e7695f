"""Draw latents with DDIM and classifier-free guidance from a class-conditional diffusion transformer."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

cuda = torch.cuda.is_available()
device = torch.device("cuda" if cuda else "cpu")
DIM, DEPTH, HEADS, SIDE, CHANNELS = (768, 12, 12, 16, 16) if cuda else (32, 2, 2, 4, 16)
IMAGES, BATCH, STEPS, CLASSES = (480, 96, 40, 1000) if cuda else (2, 2, 3, 10)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1 = nn.LayerNorm(DIM)
        self.norm2 = nn.LayerNorm(DIM)
        self.qkv, self.out = nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, DIM)
        self.up, self.down = nn.Linear(DIM, 4 * DIM), nn.Linear(4 * DIM, DIM)
        self.gates = nn.Linear(DIM, 2 * DIM)

    def forward(self, x, c):
        b, n, d = x.shape
        gate1, gate2 = self.gates(c)[:, None].chunk(2, -1)
        q, k, v = self.qkv(self.norm1(x)).view(b, n, 3, HEADS, d // HEADS).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, d)
        x = torch.addcmul(x, gate1, self.out(y))
        return torch.addcmul(x, gate2, self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh")))


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp, self.out = nn.Linear(CHANNELS, DIM), nn.Linear(DIM, CHANNELS)
        self.position = nn.Parameter(torch.randn(SIDE * SIDE, DIM) * 0.02)
        self.classes = nn.Embedding(CLASSES + 1, DIM)
        self.time = nn.Sequential(nn.Linear(256, DIM), nn.SiLU(), nn.Linear(DIM, DIM))
        self.blocks = nn.ModuleList(Block() for _ in range(DEPTH))
        self.norm = nn.LayerNorm(DIM)

    def condition(self, time_features, labels):
        return F.silu(self.time(time_features) + self.classes(labels))

    def forward(self, x, c):
        x = self.inp(x) + self.position
        for block in self.blocks:
            x = block(x, c)
        return self.out(self.norm(x))


def schedule(steps):
    """Signal and noise amplitudes, and sinusoidal features of the times, for all steps at once."""
    t = torch.linspace(1.0, 0.0, steps + 1, device=device)
    angle = t * (math.pi / 2) * 0.98
    freqs = torch.exp(torch.arange(128, device=device) * (-math.log(10000) / 128))
    phases = 1000 * t[:, None] * freqs
    return angle.cos(), angle.sin(), torch.cat([phases.cos(), phases.sin()], -1).to(torch.bfloat16)


@torch.inference_mode()
def sample(model, labels, steps, guidance=3.0):
    n = len(labels)
    signal, noise, features = schedule(steps)
    both = torch.cat([labels, torch.full_like(labels, CLASSES)])
    x = torch.randn(n, SIDE * SIDE, CHANNELS, device=device)
    for i in range(steps):
        c = model.condition(features[i], both)
        guided, free = model(x.to(torch.bfloat16).repeat(2, 1, 1), c).float().chunk(2)
        eps = torch.lerp(free, guided, guidance)
        clean = (x - noise[i] * eps) / signal[i]
        x = signal[i + 1] * clean + noise[i + 1] * eps
    return x


if __name__ == "__main__":
    torch.manual_seed(0)
    model = Denoiser().to(device, torch.bfloat16).eval()
    labels = torch.arange(IMAGES, device=device) % CLASSES
    results = [sample(model, chunk, STEPS) for chunk in labels.split(BATCH)]
    latents = torch.cat(results)
    print(tuple(latents.shape), "std", latents.std().item())
