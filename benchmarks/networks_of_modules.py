"""Small networks whose forward pass waits for the host: for ``python_between.py``."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

NAMES = (
    *("own", "deep", "gpt2", "bert"),
    *("resnet18", "vit_tiny_patch16_224", "convnext_atto", "mobilenetv3_small_100"),
)
WIDTH = 64


class Logits(nn.Module):
    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, inputs: Tensor) -> Tensor:
        logits: Tensor = self.network(inputs).logits
        return logits


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))

    def heads(self, x: Tensor) -> Tensor:
        return x.view(x.shape[0], -1, 4, WIDTH // 4).transpose(1, 2)

    def forward(self, x: Tensor) -> Tensor:
        query = self.heads(self.query(x))
        key = self.heads(self.key(x))
        value = self.heads(self.value(x))
        mixed = functional.scaled_dot_product_attention(query, key, value)
        result: Tensor = self.out(mixed.transpose(1, 2).reshape(x.shape[0], -1, WIDTH))
        return result


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = Attention()
        self.wide = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.ReLU(), nn.Linear(2 * WIDTH, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.first(x))
        return x + self.wide(self.second(x))


class Own(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(12))
        self.out = nn.Linear(WIDTH, 2)

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x)
        result: Tensor = self.out(x.mean(1))
        return result


class Deep(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(60))
        self.norms = nn.ModuleList(nn.BatchNorm1d(WIDTH) for _ in range(60))

    def forward(self, x: Tensor) -> Tensor:
        for layer, norm in zip(self.layers, self.norms, strict=True):
            hidden = layer(x)
            hidden = norm(hidden)
            hidden = torch.relu(hidden)
            x = x + 0.1 * hidden
        return x


def made(name: str, device: str = "cuda") -> tuple[nn.Module, Tensor]:
    """A network of ``NAMES`` and what it is given."""
    tokens = torch.randint(0, 99, (4, 32), device=device)
    images = torch.randn(4, 3, 64, 64, device=device)
    network: nn.Module
    if name == "own":
        network, inputs = Own(), torch.randn(2, 8, WIDTH, device=device)
    elif name == "deep":
        network, inputs = Deep(), torch.randn(8, WIDTH, device=device)
    elif name == "gpt2":
        from transformers import GPT2Config, GPT2LMHeadModel

        config = GPT2Config(n_layer=6, n_embd=128, n_head=4, vocab_size=100, use_cache=False)
        network, inputs = Logits(GPT2LMHeadModel(config)), tokens
    elif name == "bert":
        from transformers import BertConfig, BertForSequenceClassification

        sizes = {"hidden_size": 128, "intermediate_size": 256, "vocab_size": 100}
        layers = {"num_hidden_layers": 6, "num_attention_heads": 4}
        network, inputs = Logits(BertForSequenceClassification(BertConfig(**sizes, **layers))), tokens
    else:
        import timm

        size = {"img_size": 64} if name.startswith("vit") else {}
        network, inputs = timm.create_model(name, num_classes=10, **size), images
    return network.to(device), inputs
