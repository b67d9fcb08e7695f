"""Date parchments by their texture: a compiled vision transformer with mixed-in labels, everything on the device."""

import math
import time

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.set_float32_matmul_precision("high")


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        q, k, v = self.qkv(self.norm1(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class DatingViT(nn.Module):
    def __init__(self, side=128, patch=8, width=512, heads=8, depth=8, centuries=16):
        super().__init__()
        self.patch = patch
        self.embed = nn.Linear(3 * patch * patch, width)
        self.place = nn.Parameter(torch.randn((side // patch) ** 2, width) * 0.02)
        self.layers = nn.Sequential(*[Layer(width, heads) for _ in range(depth)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, centuries)

    def forward(self, bytes_):
        pixels = bytes_.to(torch.bfloat16) / 127.5 - 1
        x = self.embed(F.pixel_unshuffle(pixels, self.patch).flatten(2).transpose(1, 2)) + self.place
        return self.head(self.norm(self.layers(x)).mean(1))


def parchments(count, side, centuries, rng):
    """Grain whose scale and tint depend on the century."""
    century = torch.randint(centuries, (count,), generator=rng, device=device)
    fine = torch.randn(count, 3, side, side, generator=rng, device=device)
    coarse = F.interpolate(torch.randn(count, 3, side // 8, side // 8, generator=rng, device=device), size=(side, side))
    share = (century.float() / (centuries - 1))[:, None, None, None]
    pixels = 140 + 40 * share + 50 * (share * fine + (1 - share) * coarse)
    return pixels.clamp(0, 255).to(torch.uint8), century


def warm_cosine(steps, warm):
    return lambda step: min((step + 1) / warm, 0.5 + 0.5 * math.cos(math.pi * step / steps))


def main(steps=500, batch=112, side=128, centuries=16):
    torch.manual_seed(0)
    rng = torch.Generator(device=device).manual_seed(1)
    images, century = parchments(batch * 50, side, centuries, rng)
    model = DatingViT(side=side, centuries=centuries).to(device)
    compiled = torch.compile(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-4, weight_decay=0.05, fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, warm_cosine(steps, 50))
    began = time.perf_counter()
    for step in range(1, steps + 1):
        at = (step - 1) % 50 * batch
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = F.cross_entropy(compiled(images[at : at + batch]), century[at : at + batch], label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 100 == 0:
            print(f"step {step}: loss {loss.item():.3f}, {(time.perf_counter() - began) / step * 1e3:.1f} ms a step")


if __name__ == "__main__":
    main()
