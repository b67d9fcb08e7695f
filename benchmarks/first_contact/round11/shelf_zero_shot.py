"""Zero-shot recognition of shelf products: images against the embedded descriptions of all products."""
import argparse
import contextlib
import time

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        q, k, v = self.qkv(self.norm1(x)).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + self.mlp(self.norm2(x))


class ImageTower(nn.Module):
    def __init__(self, dim, depth, patch=16, side=256):
        super().__init__()
        self.patch = patch
        self.embed = nn.Linear(3 * patch * patch, dim)
        self.places = nn.Parameter(torch.randn((side // patch) ** 2, dim) * 0.02)
        self.blocks = nn.ModuleList(Block(dim, dim // 64) for _ in range(depth))
        self.out = nn.Linear(dim, 512)

    def forward(self, images):
        patches = F.pixel_unshuffle(images, self.patch).flatten(2).transpose(1, 2)
        x = self.embed(patches) + self.places
        for block in self.blocks:
            x = block(x)
        return self.out(x.mean(1))


class Catalogue(nn.Module):
    """Descriptions of the products, pooled token features from a language model (frozen)."""

    def __init__(self, products, phrasings, dim):
        super().__init__()
        self.register_buffer("features", torch.randn(products, phrasings, dim))
        self.head = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, 512))

    def forward(self):
        return self.head(self.features).mean(1)


class Recogniser:
    def __init__(self, args, device):
        self.images = ImageTower(args.dim, args.depth, side=args.side).to(device, torch.bfloat16).eval()
        self.catalogue = Catalogue(args.products, args.phrasings, args.dim).to(device, torch.bfloat16).eval()
        if device.type == "cuda":
            for block in self.images.blocks:
                block.compile()

    @torch.inference_mode()
    def recognise(self, images, k=4):
        products = F.normalize(self.catalogue(), dim=1)  # flaw: constant-rebuilt
        found = F.normalize(self.images(images), dim=1)
        return (found @ products.T).float().topk(k, dim=1)


@contextlib.contextmanager
def clock(label, count):
    began = time.perf_counter()
    yield
    if torch.cuda.is_available():
        print(f"{label}: {(time.perf_counter() - began) / count * 1000:.2f} ms each")


def main():
    gpu = torch.cuda.is_available()
    parser = argparse.ArgumentParser()
    parser.add_argument("--dim", type=int, default=768 if gpu else 64)
    parser.add_argument("--depth", type=int, default=6 if gpu else 1)
    parser.add_argument("--side", type=int, default=256 if gpu else 32)
    parser.add_argument("--products", type=int, default=4096 if gpu else 32)
    parser.add_argument("--phrasings", type=int, default=16 if gpu else 2)
    parser.add_argument("--requests", type=int, default=250 if gpu else 4)
    parser.add_argument("--batch", type=int, default=64 if gpu else 2)
    args = parser.parse_args()
    device = torch.device("cuda" if gpu else "cpu")
    torch.manual_seed(12)
    recogniser = Recogniser(args, device)
    photos = torch.randn(8, args.batch, 3, args.side, args.side, device=device, dtype=torch.bfloat16)
    recogniser.recognise(photos[0])
    with clock("request", args.requests):
        answers = [recogniser.recognise(photos[i % 8]) for i in range(args.requests)]
        scores = torch.stack([values for values, _ in answers]).cpu()
    print(f"top-1 {scores[..., 0].mean().item():.4f} top-4 {scores.mean().item():.4f}")


if __name__ == "__main__":
    main()
