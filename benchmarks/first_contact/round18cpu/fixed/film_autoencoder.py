"""Collaborative filtering by an autoencoder over all films (Sedhain et al. in spirit)."""
import os
import sys
import time
from abc import ABC, abstractmethod

import torch
from torch import nn

TINY = os.environ.get("TINY") == "1"


class Recipe(ABC):
    """Loop shared by our recommenders; subclasses say what a batch is and what the loss is."""

    def __init__(self, model, lr):
        self.model = model
        self.opt = torch.optim.SGD(model.parameters(), lr=lr, fused=True)

    @abstractmethod
    def batches(self): ...

    @abstractmethod
    def objective(self, batch): ...

    def clear(self):
        for group in self.opt.param_groups:
            for w in group["params"]:
                w.grad = None

    def run(self):
        began, losses = time.perf_counter(), []
        for batch in self.batches():
            self.clear()
            loss = self.objective(batch)
            loss.backward()
            self.opt.step()
            losses.append(loss.item())
        print(f"{(time.perf_counter() - began) / len(losses) * 1e3:.1f} ms", file=sys.stderr)
        print(f"{losses[0]:.4f} -> {losses[-1]:.4f}")


class FilmAE(Recipe):
    def __init__(self, films, code, users, rounds):
        super().__init__(nn.Sequential(nn.Linear(films, code), nn.Sigmoid(), nn.Linear(code, films)), lr=0.5)
        self.films, self.users, self.rounds = films, users, rounds

    def batches(self):
        gen = torch.Generator().manual_seed(31)
        taste = torch.rand(self.films, generator=gen) * 0.05
        for _ in range(self.rounds):
            yield (torch.rand(self.users, self.films, generator=gen) < taste).float()

    def objective(self, seen):
        return nn.functional.binary_cross_entropy_with_logits(self.model(seen), seen)


torch.manual_seed(0)
(FilmAE(300, 16, 8, 4) if TINY else FilmAE(9000, 700, 24, 100)).run()
