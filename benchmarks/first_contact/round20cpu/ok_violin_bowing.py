"""Labels bow strokes in sensor recordings with a trained encoder (weights are random here). Offline scoring."""
import collections
import time

import torch
from torch import nn
from torch.nn import functional as F

STROKES = ("detache", "legato", "martele", "spiccato", "tremolo", "col legno")


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        b, n, c = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        return self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, c))


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.norm1, self.attn = nn.LayerNorm(dim), Attention(dim, heads)
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 3 * dim), nn.GELU(), nn.Linear(3 * dim, dim))

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class BowEncoder(nn.Module):
    def __init__(self, sensors=9, dim=96, heads=4, depth=3, frames=512, patch=4):
        super().__init__()
        self.patch = nn.Conv1d(sensors, dim, patch, stride=patch)
        self.place = nn.Parameter(torch.randn(frames // patch, dim) * 0.02)
        self.blocks = nn.Sequential(*[Block(dim, heads) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)
        self.classify = nn.Linear(dim, len(STROKES))

    def forward(self, recording):
        x = self.patch(recording).transpose(1, 2) + self.place
        return self.classify(self.norm(self.blocks(x)).mean(1))


class Archive:
    """Yields batches of recordings, as a reader of files would."""

    def __init__(self, batches, batch, sensors=9, frames=512):
        self.shape, self.batches = (batch, sensors, frames), batches
        self.drift = torch.linspace(-1, 1, frames)

    def __len__(self):
        return self.batches

    def __iter__(self):
        for _ in range(self.batches):
            yield torch.randn(self.shape).add_(self.drift)


class Scorer:
    def __init__(self, model):
        self.model = model.eval()
        self.counts = collections.Counter()
        self.confidence = 0.0

    @torch.inference_mode()
    def __call__(self, recordings):
        probability, stroke = self.model(recordings).softmax(-1).max(-1)
        self.counts.update(stroke.tolist())
        self.confidence += probability.sum().item()

    def summary(self):
        total = sum(self.counts.values())
        shares = ", ".join(f"{STROKES[k]} {n / total:.0%}" for k, n in self.counts.most_common(3))
        return f"{total} recordings, mean confidence {self.confidence / total:.3f}: {shares}"


if __name__ == "__main__":
    torch.manual_seed(0)
    archive = Archive(batches=360, batch=16)
    scorer = Scorer(BowEncoder())
    started = time.perf_counter()
    for number, recordings in enumerate(archive, 1):
        scorer(recordings)
        if number % 60 == 0:
            print(f"{number}/{len(archive)} in {time.perf_counter() - started:.1f} s | {scorer.summary()}")
