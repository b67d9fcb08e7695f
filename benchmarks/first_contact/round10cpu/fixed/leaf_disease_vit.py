"""Batch inference with a small vision transformer over leaf photographs."""

import torch
import torch.nn.functional as F
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads, self.size = heads, dim // heads
        self.query = nn.Linear(dim, dim)
        self.key = nn.Linear(dim, dim)
        self.value = nn.Linear(dim, dim)
        self.out = nn.Linear(dim, dim)

    def split(self, x):
        return x.unflatten(-1, (self.heads, self.size)).transpose(1, 2)

    def forward(self, x):
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        context = F.scaled_dot_product_attention(q, k, v)
        return self.out(context.transpose(1, 2).flatten(2))


class EncoderLayer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim)
        self.attention = MultiHeadAttention(dim, heads)
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class LeafViT(nn.Module):
    def __init__(self, image=160, patch=8, dim=64, heads=4, layers=2, classes=14):
        super().__init__()
        self.patches = nn.Conv2d(3, dim, patch, stride=patch)
        self.position = nn.Parameter(0.02 * torch.randn(1, (image // patch) ** 2, dim))
        self.layers = nn.Sequential(*(EncoderLayer(dim, heads) for _ in range(layers)))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, classes)

    def forward(self, images):
        x = self.patches(images).flatten(2).transpose(1, 2) + self.position
        return self.head(self.norm(self.layers(x)).mean(1))


class Predictor:
    def __init__(self, model, batch_size=8):
        self.model = model.eval()
        self.batch_size = batch_size

    @torch.inference_mode()
    def predict(self, photographs):
        results = []
        for batch in photographs.split(self.batch_size):
            probabilities = self.model(batch.float().div_(255)).softmax(-1)
            results.append(probabilities)
        return torch.cat(results)


if __name__ == "__main__":
    torch.manual_seed(0)
    photographs = torch.randint(0, 256, (960, 3, 160, 160), dtype=torch.uint8)
    predictor = Predictor(LeafViT())
    probabilities = predictor.predict(photographs)
    counts = torch.bincount(probabilities.argmax(1), minlength=14)
    print("predicted classes:", counts.tolist())
    print(f"mean confidence {probabilities.amax(1).mean():.5f}")
