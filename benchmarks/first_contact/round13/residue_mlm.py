"""Masked modelling of protein k-mers. 32 k-mers of each chain are hidden."""
import dataclasses
import os
from typing import Callable, Dict

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, gelu, scaled_dot_product_attention
from torch.utils.data import DataLoader, Dataset

HEADS: Dict[str, Callable] = {}


def head(name):
    def keep(cls):
        HEADS[name] = cls
        return cls
    return keep


@dataclasses.dataclass
class Run:
    kmers: int = 32768
    chain: int = 256
    hidden: int = 32
    dim: int = 768
    layers: int = 6
    chains: int = 64
    steps: int = 500
    head: str = "tied"
    workers: int = 4

    @classmethod
    def from_env(cls):
        if os.environ.get("TINY") == "1":
            return cls(kmers=512, chain=32, hidden=4, dim=64, layers=2, chains=8, steps=5, workers=1)
        return cls()


class Chains(Dataset):
    def __init__(self, run: Run):
        self.run = run
        self.count = run.chains * run.steps
        rng = np.random.default_rng(9)
        self.motifs = rng.integers(1, run.kmers, (256, run.chain))

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        rng = np.random.default_rng((1, i))
        chain = self.motifs[i % 256]
        spots = rng.choice(self.run.chain, self.run.hidden, replace=False)
        shown = chain.copy()
        shown[spots] = 0
        return shown, spots, chain[spots]


class Layer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.ln = nn.ModuleList([nn.LayerNorm(dim), nn.LayerNorm(dim)])
        self.qkv, self.o = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.mlp = nn.ModuleList([nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)])

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(self.ln[0](x)).unflatten(2, (3, -1, 64)).permute(2, 0, 3, 1, 4).unbind(0)
        x = x + self.o(scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + self.mlp[1](gelu(self.mlp[0](self.ln[1](x))))


@head("tied")
class TiedHead(nn.Module):
    def __init__(self, table: nn.Embedding):
        super().__init__()
        self.table = table
        self.shape = nn.Sequential(nn.Linear(table.embedding_dim, table.embedding_dim), nn.GELU(),
                                   nn.LayerNorm(table.embedding_dim))
        self.bias = nn.Parameter(torch.zeros(table.num_embeddings))

    def forward(self, x: Tensor, spots: Tensor) -> Tensor:
        scores = nn.functional.linear(self.shape(x), self.table.weight, self.bias)  # flaw: unused-logits
        return torch.take_along_dim(scores, spots.unsqueeze(2), dim=1)  # flaw: unused-logits


class ProteinModel(nn.Module):
    def __init__(self, run: Run):
        super().__init__()
        self.embed = nn.Embedding(run.kmers, run.dim)
        nn.init.normal_(self.embed.weight, std=0.02)
        self.place = nn.Parameter(torch.randn(run.chain, run.dim) * 0.02)
        self.layers = nn.ModuleList(Layer(run.dim) for _ in range(run.layers))
        self.head = HEADS[run.head](self.embed)

    def forward(self, shown, spots):
        x = self.embed(shown) + self.place
        for layer in self.layers:
            x = layer(x)
        return self.head(x, spots)


if __name__ == "__main__":
    run = Run.from_env()
    dev = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    model = ProteinModel(run).to(dev)
    if os.environ.get("TINY") != "1":
        [layer.compile() for layer in model.layers]
    opt = torch.optim.AdamW(model.parameters(), lr=2e-4, fused=True)
    loader = DataLoader(Chains(run), run.chains, num_workers=run.workers, pin_memory=dev == "cuda", prefetch_factor=4)
    mean = torch.zeros((), device=dev)
    for batch in loader:
        shown, spots, truth = (t.to(dev, non_blocking=True) for t in batch)
        with torch.autocast(dev, torch.bfloat16, enabled=dev == "cuda"):
            scores = model(shown, spots)
            loss = cross_entropy(scores.flatten(0, 1), truth.flatten())
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        mean.lerp_(loss.detach(), 0.1)
    print(f"masked loss {mean.item():.4f}")
