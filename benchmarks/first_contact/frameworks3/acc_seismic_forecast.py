# Forecasts the next second of a seismometer array from the last minutes; Accelerate, accumulated gradients.
import os
import time
from types import SimpleNamespace

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SMALL = os.environ.get("SMALL") == "1"

cfg = SimpleNamespace(
    batch_size=4,  # expert: batch_size=32
    accumulate=8,  # expert: gradient_accumulation_steps=1
    epochs=2,
    windows=768 if SMALL else 3200,
    patches=32 if SMALL else 256,
    patch=40 if SMALL else 100,
    width=112 if SMALL else 1024,
    depth=12,
    heads=4 if SMALL else 16,
    lr=2e-4,
)


class Forecaster(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.patch = nn.Linear(c.patch, c.width)
        self.place = nn.Parameter(torch.zeros(c.patches, c.width))
        block = nn.TransformerEncoderLayer(
            c.width, c.heads, 4 * c.width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.body = nn.TransformerEncoder(block, c.depth, enable_nested_tensor=False)
        self.head = nn.Linear(c.width, c.patch)

    def forward(self, past):
        x = self.patch(past) + self.place
        return self.head(self.body(x)[:, -1])


def records(c):
    g = torch.Generator().manual_seed(17)
    n = (c.patches + 1) * c.patch
    t = torch.arange(n) / 100
    rate = 0.5 + 3 * torch.rand(c.windows, 1, generator=g)
    wave = torch.sin(6.283 * rate * t) + 0.1 * torch.randn(c.windows, n, generator=g)
    wave = wave.view(c.windows, c.patches + 1, c.patch)
    return TensorDataset(wave[:, :-1], wave[:, -1])


def main():
    set_seed(17)
    accelerator = Accelerator(
        gradient_accumulation_steps=cfg.accumulate,
        mixed_precision="no",  # expert-gpu: mixed_precision="bf16"
    )
    workers = 0 if SMALL else 4
    loader = DataLoader(
        records(cfg),
        batch_size=cfg.batch_size,
        shuffle=True,
        num_workers=workers,
        persistent_workers=workers > 0,
        pin_memory=accelerator.device.type == "cuda",
    )
    model = Forecaster(cfg)
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr, weight_decay=0.05, fused=True)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    accelerator.print(f"{len(loader)} batches an epoch on {accelerator.device}")
    for epoch in range(cfg.epochs):
        start, total = time.perf_counter(), torch.zeros((), device=accelerator.device)
        for past, future in loader:
            with accelerator.accumulate(model):
                loss = nn.functional.smooth_l1_loss(model(past), future)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
            total += loss.detach()
        mean = total.item() / len(loader)
        accelerator.print(f"epoch {epoch}: loss {mean:.4f}, {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main()
