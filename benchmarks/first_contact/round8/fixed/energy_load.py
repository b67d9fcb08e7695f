"""Day-ahead load of electricity meters: patch transformer with a quantile loss."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
METERS, HOURS = (400, 8760) if CUDA else (6, 1200)
CONTEXT, HORIZON, PATCH = (1344, 168, 8) if CUDA else (96, 24, 8)
DIM, HEADS, DEPTH = (1024, 16, 8) if CUDA else (32, 2, 2)
BATCH, STEPS = (96, 100) if CUDA else (4, 10)
QUANTILES = (0.1, 0.5, 0.9)


class MeterWindows(IterableDataset):
    """An endless stream of random windows, already in batches."""

    def __init__(self, seed=0):
        rng = np.random.default_rng(seed)
        hour = np.arange(HOURS, dtype=np.float32)
        daily = np.sin(2 * np.pi * hour / 24 + rng.uniform(0, 6, (METERS, 1)))
        weekly = np.sin(2 * np.pi * hour / 168 + rng.uniform(0, 6, (METERS, 1)))
        noise = rng.standard_normal((METERS, HOURS), dtype=np.float32)
        self.load = (daily + 0.5 * weekly + 0.2 * noise).astype(np.float32)
        self.offsets = np.arange(CONTEXT + HORIZON)

    def __iter__(self):
        worker = get_worker_info()
        rng = np.random.default_rng(1 + (worker.id if worker else 0))
        while True:
            meter = rng.integers(METERS, size=(BATCH, 1))
            start = rng.integers(HOURS - CONTEXT - HORIZON, size=(BATCH, 1))
            window = self.load[meter, start + self.offsets]
            yield torch.from_numpy(window[:, :CONTEXT].copy()), torch.from_numpy(window[:, CONTEXT:].copy())


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.qkv, self.proj = nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, DIM)
        self.up, self.down = nn.Linear(DIM, 4 * DIM), nn.Linear(4 * DIM, DIM)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v)
        x = x + self.proj(a.transpose(1, 2).reshape(b, t, DIM))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class PatchTransformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(PATCH, DIM)
        self.position = nn.Parameter(torch.randn(CONTEXT // PATCH, DIM) * 0.02)
        self.blocks = nn.ModuleList(Block() for _ in range(DEPTH))
        self.norm = nn.LayerNorm(DIM)
        self.head = nn.Linear(DIM, HORIZON * len(QUANTILES))

    def forward(self, past):
        x = self.embed(past.unflatten(1, (-1, PATCH))) + self.position
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x.mean(dim=1))).unflatten(1, (HORIZON, -1))


def pinball(forecast, future, levels):
    error = future.unsqueeze(-1) - forecast
    return torch.maximum(levels * error, (levels - 1) * error).mean()


def main():
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    loader = DataLoader(MeterWindows(), batch_size=None, num_workers=6 if CUDA else 0, pin_memory=CUDA)
    levels = torch.tensor(QUANTILES, device=DEVICE)
    model = PatchTransformer().to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4, fused=CUDA)

    for step, (past, future) in enumerate(loader):
        past = past.to(DEVICE, non_blocking=True)
        future = future.to(DEVICE, non_blocking=True)
        with torch.autocast(DEVICE.type, dtype=torch.bfloat16, enabled=CUDA):
            forecast = model(past)
        loss = pinball(forecast.float(), future, levels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step}: pinball {loss.item():.4f}")
        if step + 1 == STEPS:
            break
    print(f"pinball {loss.item():.5f}")


if __name__ == "__main__":
    main()
