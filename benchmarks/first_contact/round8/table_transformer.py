"""FT-Transformer on a numeric table with quantile features and swap noise."""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


@dataclass
class Settings:
    rows: int = 24_000
    columns: int = 99
    bins: int = 64
    batch: int = 1024
    dim: int = 256
    heads: int = 8
    layers: int = 4
    epochs: int = 4
    swap: float = 0.15
    lr: float = 2e-4


class QuantileTable(Dataset):
    def __init__(self, s, seed=0):
        rng = np.random.default_rng(seed)
        self.values = rng.lognormal(size=(s.rows, s.columns)).astype(np.float32)
        weights = rng.normal(size=s.columns).astype(np.float32)
        self.labels = (np.log(self.values) @ weights > 0).astype(np.float32)
        sample = self.values[: min(s.rows, 4000)]
        self.edges = np.quantile(sample, np.linspace(0, 1, s.bins + 1)[1:-1], axis=0).T.copy()
        self.swap = s.swap

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        row = self.values[index]
        noisy = np.random.random(row.shape[0]) < self.swap
        other = self.values[np.random.randint(len(self.values))]
        row = np.where(noisy, other, row)
        rank = (row[:, None] >= self.edges).mean(axis=1, dtype=np.float32)
        return torch.from_numpy(rank), torch.from_numpy(np.log(row)), self.labels[index]


class Layer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.ffn = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        x = x + self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, d))
        return x + self.ffn(self.norm2(x))


class FTTransformer(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(s.columns, s.dim) * 0.1)
        self.shift = nn.Parameter(torch.randn(s.columns, s.dim) * 0.1)
        self.cls = nn.Parameter(torch.zeros(1, 1, s.dim))
        self.layers = nn.Sequential(*[Layer(s.dim, s.heads) for _ in range(s.layers)])
        self.head = nn.Sequential(nn.LayerNorm(s.dim), nn.Linear(s.dim, 1))

    def forward(self, rank, log):
        tokens = torch.addcmul(self.shift, (rank + log).unsqueeze(-1), self.scale)
        tokens = torch.cat((self.cls.expand(len(tokens), -1, -1), tokens), dim=1)
        return self.head(self.layers(tokens)[:, 0]).squeeze(-1)


def run(s, device):
    cuda = device.type == "cuda"
    torch.manual_seed(0)
    np.random.seed(0)
    loader = DataLoader(QuantileTable(s), batch_size=s.batch, shuffle=True, drop_last=True, pin_memory=cuda)  # flaw: loader-without-workers
    model = FTTransformer(s).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=s.lr, weight_decay=1e-5, fused=cuda)
    for epoch in range(s.epochs):
        total = torch.zeros((), device=device)
        for rank, log, label in loader:
            rank = rank.to(device, non_blocking=True)
            log = log.to(device, non_blocking=True)
            label = label.to(device, non_blocking=True)
            with torch.autocast(device.type, torch.bfloat16, enabled=cuda):
                score = model(rank, log)
            loss = F.binary_cross_entropy_with_logits(score.float(), label)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            total += loss.detach()
        print(f"epoch {epoch} loss {total.item() / len(loader):.4f}")


if __name__ == "__main__":
    torch.set_float32_matmul_precision("high")
    if torch.cuda.is_available():
        run(Settings(), torch.device("cuda"))
    else:
        run(Settings(rows=256, columns=9, bins=8, batch=32, dim=16, heads=2, layers=1, epochs=2), torch.device("cpu"))
