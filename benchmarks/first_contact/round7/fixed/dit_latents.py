"""Class-conditional diffusion transformer on autoencoder latents, velocity prediction."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F


def modulate(x, shift, scale):
    return torch.addcmul(shift.unsqueeze(1), x, 1 + scale.unsqueeze(1))


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads, self.scale = heads, (dim // heads) ** -0.5
        self.qkv = nn.Linear(dim, dim * 3)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        B, N, C = x.shape
        q, k, v = self.qkv(x).reshape(B, N, 3, self.heads, C // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        x = F.scaled_dot_product_attention(q, k, v, scale=self.scale)
        return self.proj(x.transpose(1, 2).reshape(B, N, C))


class DiTBlock(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim, elementwise_affine=False)
        self.norm2 = nn.LayerNorm(dim, elementwise_affine=False)
        self.attn = Attention(dim, heads)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(approximate="tanh"), nn.Linear(4 * dim, dim))
        self.ada = nn.Sequential(nn.SiLU(), nn.Linear(dim, 6 * dim))

    def forward(self, x, c):
        shift_a, scale_a, gate_a, shift_m, scale_m, gate_m = self.ada(c).chunk(6, dim=1)
        x = torch.addcmul(x, gate_a.unsqueeze(1), self.attn(modulate(self.norm1(x), shift_a, scale_a)))
        return torch.addcmul(x, gate_m.unsqueeze(1), self.mlp(modulate(self.norm2(x), shift_m, scale_m)))


class DiT(nn.Module):
    def __init__(self, dim, depth, heads, side, classes=1000):
        super().__init__()
        self.patch = nn.Linear(16, dim)
        self.position = nn.Parameter(torch.randn(1, side * side, dim) * 0.02)
        self.label = nn.Embedding(classes, dim)
        self.time = nn.Sequential(nn.Linear(256, dim), nn.SiLU(), nn.Linear(dim, dim))
        self.blocks = nn.ModuleList([DiTBlock(dim, heads) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)
        self.out = nn.Linear(dim, 16)
        self.register_buffer("freqs", torch.exp(-math.log(10000) * torch.arange(128) / 128))

    def forward(self, x, t, y):
        angle = 1000 * t[:, None] * self.freqs
        c = self.time(torch.cat([angle.cos(), angle.sin()], -1)) + self.label(y)
        x = self.patch(x) + self.position
        for block in self.blocks:
            x = block(x, c)
        return self.out(self.norm(x))


if __name__ == "__main__":
    gpu = torch.cuda.is_available()
    device = "cuda" if gpu else "cpu"
    dim, depth, heads, side, batch, steps = (768, 6, 12, 32, 32, 80) if gpu else (32, 2, 2, 4, 2, 3)
    torch.manual_seed(0)
    latents = torch.randn(512 if gpu else 8, side * side, 16, device=device)
    labels = torch.randint(0, 1000, (len(latents),), device=device)
    model = DiT(dim, depth, heads, side).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0, fused=True)
    for step in range(steps):
        pick = torch.randint(0, len(latents), (batch,), device=device)
        x1, x0 = latents[pick], torch.randn(batch, side * side, 16, device=device)
        t = torch.rand(batch, device=device)
        xt = torch.lerp(x0, x1, t.view(-1, 1, 1))
        with torch.autocast(device, dtype=torch.bfloat16):
            v = model(xt, t, labels[pick])
        loss = F.mse_loss(v.float(), x1 - x0)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"step={step} loss={loss.item():.4f}")
