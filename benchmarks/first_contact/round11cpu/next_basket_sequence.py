"""Next-item prediction for grocery baskets: causal encoder over the last purchases, softmax over the shelf."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

REGISTRY: dict[str, Any] = {}


def register(key):
    return lambda cls: REGISTRY.setdefault(key, cls)


@register("encoder/gru")
class RecurrentEncoder(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.rnn = nn.GRU(dim, dim, batch_first=True)

    def forward(self, x):
        return self.rnn(x)[0]


@register("encoder/conv")
class CausalConvEncoder(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.convs = nn.ModuleList([nn.Conv1d(dim, dim, 3, dilation=2**i) for i in range(3)])

    def forward(self, x):
        h = x.transpose(1, 2)
        for i, conv in enumerate(self.convs):
            h = h + F.relu(conv(F.pad(h, (2 * 2**i, 0))))
        return h.transpose(1, 2)


@register("model/basket")
class BasketModel(nn.Module):
    def __init__(self, items: int, dim: int, encoder: str):
        super().__init__()
        self.items = nn.Embedding(items, dim)
        self.encoder = REGISTRY[f"encoder/{encoder}"](dim)
        self.shelf = nn.Linear(dim, items)

    def forward(self, history: torch.Tensor) -> torch.Tensor:
        states = self.encoder(self.items(history))
        return self.shelf(states)  # flaw: unused-logits


@register("data/aisles")
class AisleShopper:
    """A shopper walks along an aisle and sometimes jumps to another one."""

    def __init__(self, items: int, aisle: int, length: int, seed: int):
        self.items, self.aisle, self.length = items, aisle, length
        self.gen = torch.Generator().manual_seed(seed)

    def batch(self, n: int):
        start = torch.randint(self.items, (n, 1), generator=self.gen)
        stride = torch.randint(1, 3, (n, self.length + 1), generator=self.gen)
        jump = torch.rand(n, self.length + 1, generator=self.gen) < 0.05
        stride = torch.where(jump, torch.full_like(stride, self.aisle), stride)
        walk = (start + stride.cumsum(1)) % self.items
        return walk[:, :-1], walk[:, -1]


def train(spec: dict) -> None:
    shopper = REGISTRY[spec["data"]](spec["items"], aisle=40, length=spec["length"], seed=6)
    model = REGISTRY[spec["model"]](spec["items"], spec["dim"], spec["encoder"])
    optimizer = torch.optim.AdamW(model.parameters(), lr=spec["lr"], fused=True)
    hits = 0
    for step in range(spec["steps"]):
        history, bought = shopper.batch(spec["batch"])
        scores = model(history)[:, -1]  # flaw: unused-logits
        loss = F.cross_entropy(scores, bought)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        hits += int((scores.topk(10, dim=1).indices == bought[:, None]).sum())
        if step % spec["report"] == spec["report"] - 1:
            print(f"step {step + 1:4d}  loss {loss.item():.3f}  hit@10 {hits / spec['report'] / spec['batch']:.3f}")
            hits = 0


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(5)
    train(
        {
            "model": "model/basket",
            "data": "data/aisles",
            "encoder": "conv",
            "items": 1200,
            "dim": 64,
            "length": 20,
            "batch": 48,
            "steps": 800,
            "report": 200,
            "lr": 2e-3,
        }
    )
