"""A small text encoder with norm, activation and attention written out."""

import math

import torch
from torch import nn

torch.manual_seed(3)
torch.set_num_threads(1)


class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * self.gain


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
        weights = torch.softmax(scores, dim=-1)
        y = weights @ v
        return self.out(y.transpose(1, 2).reshape(b, t, c))


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first, self.second = Norm(width), Norm(width)
        self.attention = Attention(width, 4)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attention(self.first(x))
        h = self.up(self.second(x))
        h = 0.5 * h * (1.0 + torch.erf(h / math.sqrt(2.0)))
        return x + self.down(h)


words = nn.Embedding(500, 96)
layers = nn.ModuleList([Layer(96) for _ in range(3)])
head = nn.Linear(96, 500)
parameters = [*words.parameters(), *layers.parameters(), *head.parameters()]
optimizer = torch.optim.SGD(parameters, lr=0.01)
for step in range(2000):
    tokens = torch.randint(500, (8, 64))
    h = words(tokens)
    for layer in layers:
        h = layer(h)
    loss = nn.functional.cross_entropy(head(h).flatten(0, 1), tokens.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
