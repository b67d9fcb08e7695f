"""Where in a photograph of an orchid are its pollinia? A decoder on top of a pretrained vision transformer, which stays
as it is. (The pretraining is played by a fixed seed.)"""

import time

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
SIDE, PATCH, KINDS = 256, 16, 4
BATCH, STEPS = 32, 600


class Encoder(nn.Module):
    def __init__(self, width=768, depth=8, heads=12):
        super().__init__()
        self.heads = heads
        self.patches = nn.Linear(3 * PATCH * PATCH, width)
        self.place = nn.Parameter(torch.randn((SIDE // PATCH) ** 2, width) * 0.02)
        self.layers = nn.ModuleList()
        for _ in range(depth):
            self.layers.append(
                nn.ModuleDict(
                    {
                        "norm1": nn.LayerNorm(width),
                        "qkv": nn.Linear(width, 3 * width),
                        "out": nn.Linear(width, width),
                        "norm2": nn.LayerNorm(width),
                        "mlp": nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)),
                    }
                )
            )
        self.norm = nn.LayerNorm(width)

    def forward(self, images):
        x = self.patches(F.pixel_unshuffle(images, PATCH).flatten(2).transpose(1, 2)) + self.place
        for layer in self.layers:
            q, k, v = layer["qkv"](layer["norm1"](x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
            x = x + layer["out"](F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
            x = x + layer["mlp"](layer["norm2"](x))
        return self.norm(x)


class Decoder(nn.Module):
    """A mask for each patch, painted from its token and the picture's mean."""

    def __init__(self, width=768, inner=512):
        super().__init__()
        self.mean, self.token = nn.Linear(width, inner), nn.Linear(width, inner)
        self.paint = nn.Sequential(nn.GELU(), nn.Linear(inner, inner), nn.GELU(), nn.Linear(inner, KINDS * PATCH * PATCH))

    def forward(self, tokens):
        painted = self.paint(self.token(tokens) + self.mean(tokens.mean(1, keepdim=True)))
        rows = SIDE // PATCH
        return F.pixel_shuffle(painted.transpose(1, 2).unflatten(2, (rows, rows)), PATCH)


class Segmenter(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = Encoder().eval().requires_grad_(False)
        self.decoder = Decoder()

    def train(self, mode=True):
        super().train(mode)
        self.encoder.eval()
        return self

    def forward(self, images):
        return self.decoder(self.encoder(images))


def herbarium(count, rng):
    kinds = torch.randint(KINDS, (count, 1, 16, 16), generator=rng, device=device)
    masks = F.interpolate(kinds.float(), size=(SIDE, SIDE)).long()[:, 0]
    colours = torch.randn(KINDS, 3, generator=rng, device=device)
    images = colours[masks].permute(0, 3, 1, 2).contiguous()
    images += 0.5 * torch.randn(images.shape, generator=rng, device=device)
    return images.bfloat16(), masks


def main():
    torch.manual_seed(40)
    rng = torch.Generator(device=device).manual_seed(41)
    images, masks = herbarium(BATCH * 24, rng)
    model = Segmenter().to(device).train()
    optimizer = torch.optim.AdamW(model.decoder.parameters(), lr=1e-3, fused=True)
    began = time.perf_counter()
    for step in range(1, STEPS + 1):
        at = step % 24 * BATCH
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = F.cross_entropy(model(images[at : at + BATCH]), masks[at : at + BATCH])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(f"step {step}: {loss.item():.4f}  {(time.perf_counter() - began) / step * 1e3:.1f} ms")


main()
