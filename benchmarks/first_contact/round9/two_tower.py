"""Two-tower retrieval: query transformer against frozen document vectors, popularity-sampled negatives."""
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler

CUDA = torch.cuda.is_available()


@dataclass
class TwoTowerConfig:
    documents: int = 1_000_000 if CUDA else 1000
    clicks: int = 500_000 if CUDA else 200
    vocab: int = 20_000 if CUDA else 100
    tokens: int = 64 if CUDA else 8
    width: int = 384 if CUDA else 32
    layers: int = 4 if CUDA else 1
    dim: int = 256 if CUDA else 16
    batch: int = 2048 if CUDA else 8
    negatives: int = 65536 if CUDA else 32
    steps: int = 160 if CUDA else 5
    workers: int = 8 if CUDA else 0
    device: torch.device = field(default_factory=lambda: torch.device("cuda" if CUDA else "cpu"))


class Clicks(Dataset):
    """Indexed by a whole batch of click ids at once."""

    def __init__(self, cfg):
        rng = np.random.default_rng(0)
        self.queries = rng.integers(1, cfg.vocab, (cfg.clicks, cfg.tokens), dtype=np.int32)
        self.docs = rng.integers(0, cfg.documents, cfg.clicks)

    def __len__(self):
        return len(self.docs)

    def __getitem__(self, ids):
        return torch.from_numpy(self.queries[ids]), torch.from_numpy(self.docs[ids])


class PopularitySampler:
    """Negatives in proportion to (smoothed) document popularity, by inverting the cumulative distribution."""

    def __init__(self, documents, count, exponent=0.75):
        self.rng = np.random.default_rng(3)
        weight = self.rng.zipf(1.6, documents).clip(max=10_000).astype(np.float64) ** exponent
        self.cdf = np.cumsum(weight) / weight.sum()
        self.count = count

    def draw(self):
        return np.searchsorted(self.cdf, self.rng.random(self.count)).clip(max=len(self.cdf) - 1)


class QueryTower(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.tokens = nn.Embedding(cfg.vocab, cfg.width)
        self.blocks = nn.ModuleList()
        for _ in range(cfg.layers):
            self.blocks.append(nn.ModuleDict({
                "n1": nn.LayerNorm(cfg.width), "qkv": nn.Linear(cfg.width, 3 * cfg.width),
                "out": nn.Linear(cfg.width, cfg.width), "n2": nn.LayerNorm(cfg.width),
                "up": nn.Linear(cfg.width, 4 * cfg.width), "down": nn.Linear(4 * cfg.width, cfg.width),
            }))
        self.heads = max(1, cfg.width // 64)
        self.head = nn.Linear(cfg.width, cfg.dim)

    def forward(self, ids):
        x = self.tokens(ids)
        b, t, w = x.shape
        for m in self.blocks:
            q, k, v = m["qkv"](m["n1"](x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
            x = x + m["out"](F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, w))
            x = x + m["down"](F.gelu(m["up"](m["n2"](x))))
        return F.normalize(self.head(x.mean(1)), dim=-1)


class DocumentTower(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.register_buffer("vectors", torch.randn(cfg.documents, cfg.dim, device=cfg.device).to(torch.bfloat16))
        self.mlp = nn.Sequential(nn.Linear(cfg.dim, 4 * cfg.dim), nn.GELU(), nn.Linear(4 * cfg.dim, cfg.dim))

    def forward(self, ids):
        return F.normalize(self.mlp(self.vectors[ids]), dim=-1)


def train(cfg: TwoTowerConfig):
    data = Clicks(cfg)
    sampler = BatchSampler(RandomSampler(data, num_samples=cfg.batch * cfg.steps, replacement=True), cfg.batch, True)
    loader = DataLoader(data, sampler=sampler, batch_size=None, num_workers=cfg.workers,
                        pin_memory=CUDA, persistent_workers=cfg.workers > 0)
    negatives = PopularitySampler(cfg.documents, cfg.negatives)
    query_tower, doc_tower = QueryTower(cfg).to(cfg.device), DocumentTower(cfg).to(cfg.device)
    params = [*query_tower.parameters(), *doc_tower.parameters()]
    opt = torch.optim.AdamW(params, lr=2e-4, fused=CUDA)
    labels = torch.arange(cfg.batch, device=cfg.device)

    for step, (queries, docs) in enumerate(loader, 1):
        queries = queries.to(cfg.device)  # flaw: blocking-host-copy
        docs = docs.to(cfg.device)  # flaw: blocking-host-copy
        drawn = torch.from_numpy(negatives.draw())
        drawn = (drawn.pin_memory() if CUDA else drawn).to(cfg.device, non_blocking=True)
        with torch.autocast(cfg.device.type, dtype=torch.bfloat16):
            q = query_tower(queries)
            d = doc_tower(torch.cat([docs, drawn]))
            loss = F.cross_entropy(q @ d.T * 20.0, labels)
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        if step % 50 == 0 or step == cfg.steps:
            print(f"step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    train(TwoTowerConfig())
