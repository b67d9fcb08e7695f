"""Embeds a collection of images with their captions and stores the similarity of every pair."""

import argparse
import os

import torch
import torch.nn as nn
import torch.nn.functional as F


def transformer(dim, depth):
    layer = nn.TransformerEncoderLayer(
        dim, dim // 64 or 1, 4 * dim, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
    )
    return nn.TransformerEncoder(layer, depth, nn.LayerNorm(dim), enable_nested_tensor=False)


class ImageTower(nn.Module):
    def __init__(self, dim, depth, side):
        super().__init__()
        self.patch = nn.Conv2d(3, dim, side // 10, side // 10)
        self.pos = nn.Parameter(torch.randn(100, dim) * 0.02)
        self.trunk = transformer(dim, depth)

    def forward(self, x):
        return self.trunk(self.patch(x).flatten(2).transpose(1, 2) + self.pos).mean(1)


class TextTower(nn.Module):
    def __init__(self, dim, depth, words, length):
        super().__init__()
        self.embed = nn.Embedding(words, dim)
        self.pos = nn.Parameter(torch.randn(length, dim) * 0.02)
        self.trunk = transformer(dim, depth)

    def forward(self, t):
        return self.trunk(self.embed(t) + self.pos)[:, -1]


class Collection:
    def __init__(self, count, side, length, pin):
        gen = torch.Generator().manual_seed(0)
        self.images = torch.randint(0, 256, (count, 3, side, side), dtype=torch.uint8, generator=gen)
        self.texts = torch.randint(0, 1000, (count, length), generator=gen)
        if pin:
            self.images, self.texts = self.images.pin_memory(), self.texts.pin_memory()

    def chunks(self, size, device):
        for a in range(0, len(self.texts), size):
            image = self.images[a : a + size].to(device, non_blocking=True)
            yield slice(a, a + size), image, self.texts[a : a + size].to(device, non_blocking=True)


@torch.inference_mode()
def embed(args, device, dtype=torch.bfloat16):
    see = ImageTower(args.dim, args.depth, args.side).to(device, dtype).eval()
    read = TextTower(args.dim, args.depth // 2, 1000, 32).to(device, dtype).eval()
    data = Collection(args.count, args.side, 32, device.type == "cuda")
    score = torch.empty(args.count, device=device)
    for where, image, text in data.chunks(args.batch_size, device):
        pixels = image.to(dtype) / 255
        score[where] = F.cosine_similarity(see(pixels), read(text)).float()
    return score


def arguments(small):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=120 if small else 4096)
    parser.add_argument("--side", type=int, default=20 if small else 160)
    parser.add_argument("--dim", type=int, default=32 if small else 512)
    parser.add_argument("--depth", type=int, default=2 if small else 12)
    parser.add_argument("--batch-size", type=int, default=4)  # flaw: small-batch
    return parser.parse_args()


if __name__ == "__main__":
    args = arguments("SMALL" in os.environ)
    torch.manual_seed(0)
    result = embed(args, torch.device("cuda" if torch.cuda.is_available() else "cpu"))
    print(f"{len(result)} pairs, mean similarity {result.mean().item():.4f}")
