"""BERT written in plain torch, from a config, with random weights."""

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F


@dataclass
class Config:
    vocabulary: int = 30522
    width: int = 768
    layers: int = 12
    heads: int = 12
    inner: int = 3072
    positions: int = 512
    dropout: float = 0.1


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.heads = config.heads
        self.query = nn.Linear(config.width, config.width)
        self.key = nn.Linear(config.width, config.width)
        self.value = nn.Linear(config.width, config.width)
        self.out = nn.Linear(config.width, config.width)

    def split(self, x):
        batch, length, width = x.shape
        return x.view(batch, length, self.heads, width // self.heads).transpose(1, 2)

    def forward(self, x):
        query, key, value = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        h = F.scaled_dot_product_attention(query, key, value)
        return self.out(h.transpose(1, 2).flatten(2))


class Layer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.attention = Attention(config)
        self.norm1 = nn.LayerNorm(config.width)
        self.up = nn.Linear(config.width, config.inner)
        self.down = nn.Linear(config.inner, config.width)
        self.norm2 = nn.LayerNorm(config.width)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x):
        x = self.norm1(x + self.dropout(self.attention(x)))
        h = self.down(F.gelu(self.up(x)))
        return self.norm2(x + self.dropout(h))


class Bert(nn.Module):
    """Token ids ``[batch, length]`` to logits over the vocabulary ``[batch, length, vocabulary]``."""

    def __init__(self, config):
        super().__init__()
        self.words = nn.Embedding(config.vocabulary, config.width)
        self.places = nn.Embedding(config.positions, config.width)
        self.norm = nn.LayerNorm(config.width)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.layers))
        self.head = nn.Linear(config.width, config.vocabulary)

    def forward(self, tokens):
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.norm(self.words(tokens) + self.places(places))
        for layer in self.layers:
            x = layer(x)
        return self.head(x)
