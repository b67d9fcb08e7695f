"""`slow.py` as one would write it with care: PyTorch's layer norm, and four times the batch.

    warpline profile examples/layernorm-finetune/fixed.py

A step has four times the samples, so compare time per sample.
"""

import math
import random

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

device = "cuda" if torch.cuda.is_available() else "cpu"
if device == "cuda":
    VOCABULARY, WIDTH, LAYERS, HEADS, BATCH, LENGTH = 30522, 768, 12, 12, 32, 128
else:
    VOCABULARY, WIDTH, LAYERS, HEADS, BATCH, LENGTH = 2000, 192, 2, 4, 32, 64


class LayerNorm(nn.Module):
    """With the parameter names of the TensorFlow checkpoints."""

    def __init__(self, width, eps=1e-12):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(width))
        self.beta = nn.Parameter(torch.zeros(width))
        self.eps = eps

    def forward(self, x):
        return F.layer_norm(x, self.gamma.shape, self.gamma, self.beta, self.eps)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.norm1 = LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)
        self.norm2 = LayerNorm(WIDTH)

    def attention(self, x):
        batch, length, _ = x.shape
        heads = self.qkv(x).view(batch, length, 3, HEADS, WIDTH // HEADS)
        query, key, value = heads.permute(2, 0, 3, 1, 4)
        h = F.scaled_dot_product_attention(query, key, value)
        return self.out(h.transpose(1, 2).reshape(batch, length, WIDTH))

    def forward(self, x):
        x = self.norm1(x + self.attention(x))
        return self.norm2(x + self.down(F.gelu(self.up(x))))


class PairClassifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(VOCABULARY, WIDTH)
        self.segments = nn.Embedding(2, WIDTH)
        self.register_buffer("places", self.waves())
        self.norm = LayerNorm(WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.pooler = nn.Linear(WIDTH, WIDTH)
        self.head = nn.Linear(WIDTH, 2)

    @staticmethod
    def waves():
        place = torch.arange(LENGTH)[:, None]
        rates = torch.exp(torch.arange(0, WIDTH, 2) * (-math.log(10000) / WIDTH))
        return torch.stack((torch.sin(place * rates), torch.cos(place * rates)), -1).flatten(1)

    def forward(self, tokens, segments):
        x = self.norm(self.words(tokens) + self.segments(segments) + self.places)
        for layer in self.layers:
            x = layer(x)
        return self.head(torch.tanh(self.pooler(x[:, 0])))


class Pairs(Dataset):
    """Two sentences, and whether the second repeats words of the first; drawn once, then kept."""

    def __init__(self, size=4096):
        draw = random.Random(0)
        half = LENGTH // 2
        self.samples = []
        for index in range(size):
            first = [draw.randrange(3, VOCABULARY) for _ in range(half)]
            second = [draw.choice(first) if index % 2 else draw.randrange(3, VOCABULARY) for _ in range(half)]
            self.samples.append((first + second, [0] * half + [1] * half, index % 2))

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        tokens, segments, label = self.samples[index]
        return torch.tensor(tokens), torch.tensor(segments), label


def main():
    torch.manual_seed(0)
    loader = DataLoader(Pairs(), BATCH, shuffle=True, num_workers=2, pin_memory=device == "cuda")
    model = PairClassifier().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5, fused=device == "cuda")
    for step, (tokens, segments, labels) in enumerate(loader):
        tokens = tokens.to(device, non_blocking=True)
        segments = segments.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        loss = F.cross_entropy(model(tokens, segments), labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(f"step {step}: loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
