"""Click prediction with a catalogue of ads kept as Python records."""
import gc
import random

import torch
import torch.nn.functional as F
from torch import nn


class Catalogue:
    def __init__(self, ads, seed):
        rng = random.Random(seed)
        self.ads = [{"id": i, "brand": rng.randrange(500), "tags": [rng.randrange(900) for _ in range(4)],
                     "size": (rng.choice((300, 728)), 250), "bid": {"cpc": rng.random(), "cap": i % 17}}
                    for i in range(ads)]

    def batch(self, rng, size):
        picked = rng.choices(self.ads, k=size)
        tags = torch.tensor([ad["tags"] for ad in picked])
        brand = torch.tensor([ad["brand"] for ad in picked])
        bid = torch.tensor([ad["bid"]["cpc"] for ad in picked])
        return tags, brand, bid, ((brand % 7 == 0) | (bid > 0.8)).float()


class ClickModel(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.tags = nn.EmbeddingBag(900, width, mode="mean")
        self.brand = nn.Embedding(500, width)
        self.deep = nn.Sequential(nn.Linear(2 * width + 1, 384), nn.ReLU(), nn.Linear(384, 384), nn.ReLU(),
                                  nn.Linear(384, 1))

    def forward(self, tags, brand, bid):
        x = torch.cat([self.tags(tags), self.brand(brand), bid[:, None]], dim=1)
        return self.deep(x).squeeze(-1)


class Hooks:
    def __init__(self):
        self.after_batch = []
        self.after_epoch = []

    def fire(self, name, **state):
        for function in getattr(self, name):
            function(**state)


def tidy(**state):
    pass


def train(epochs=4, batches=30, size=768):
    torch.manual_seed(0)
    rng = random.Random(1)
    catalogue = Catalogue(30_000, 2)
    model = ClickModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    hooks, losses = Hooks(), []
    hooks.after_batch += [lambda loss, **_: losses.append(loss.item()), tidy]
    hooks.after_epoch += [lambda epoch: print(f"epoch {epoch} loss {sum(losses[-batches:]) / batches:.4f}")]
    for epoch in range(epochs):
        for _ in range(batches):
            *inputs, clicked = catalogue.batch(rng, size)
            loss = F.binary_cross_entropy_with_logits(model(*inputs), clicked)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            hooks.fire("after_batch", loss=loss)
        hooks.fire("after_epoch", epoch=epoch)


train()
