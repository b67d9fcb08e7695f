import argparse
import os

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Windows(Dataset):
    """Sliding windows of a set of electricity meters."""

    def __init__(self, series, context, horizon, per_epoch, seed=0):
        self.series, self.context, self.horizon = series, context, horizon
        rng = np.random.default_rng(seed)
        self.where = np.stack([
            rng.integers(series.shape[0], size=per_epoch),
            rng.integers(series.shape[1] - context - horizon, size=per_epoch),
        ], 1)

    def __len__(self):
        return len(self.where)

    def __getitem__(self, i):
        m, t = self.where[i]
        w = self.series[m, t : t + self.context + self.horizon]
        return w[: self.context], w[self.context :]


def make_loader(ds, args, device):
    workers = 2 if args.small else 8
    return DataLoader(
        ds, batch_size=args.batch, shuffle=True, drop_last=True,
        pin_memory=device == "cuda", num_workers=workers, persistent_workers=True,
    )


class Mixer(nn.Module):
    def __init__(self, context, horizon, patch, dim, depth):
        super().__init__()
        self.patch = patch
        n = context // patch
        self.inp = nn.Linear(patch, dim)
        layer = nn.TransformerEncoderLayer(
            dim, dim // 64, 4 * dim, dropout=0.0, batch_first=True, norm_first=True, activation="gelu"
        )
        self.body = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.out = nn.Linear(n * dim, horizon)

    def forward(self, x):
        h = self.inp(x.unflatten(1, (-1, self.patch)))
        return self.out(self.body(h).flatten(1))


def run_epoch(model, loader, opt, device):
    seen, total = 0, torch.zeros((), device=device)
    for x, y in loader:
        x = x.to(device, non_blocking=True)
        y = y.to(device, non_blocking=True)
        with torch.autocast(device, torch.bfloat16):
            loss = nn.functional.l1_loss(model(x).float(), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.detach()
        seen += 1
    return total / seen


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--small", action="store_true", default=bool(os.environ.get("SMALL")))
    ap.add_argument("--epochs", type=int, default=None)
    args = ap.parse_args()
    args.batch = 8 if args.small else 256
    per_epoch = args.batch * (10 if args.small else 10)
    epochs = args.epochs or (3 if args.small else 14)
    device = "cuda" if torch.cuda.is_available() else "cpu"

    rng = np.random.default_rng(1)
    meters, hours = (4, 2000) if args.small else (400, 8760)
    series = rng.standard_normal((meters, hours), dtype=np.float32).cumsum(1) * 0.05
    context, horizon = (64, 16) if args.small else (1024, 96)
    loader = make_loader(Windows(series, context, horizon, per_epoch), args, device)
    model = Mixer(context, horizon, 16, 64 if args.small else 512, 1 if args.small else 6).to(device)
    opt = torch.optim.AdamW(model.parameters(), 3e-4, fused=True)
    for e in range(epochs):
        mae = run_epoch(model, loader, opt, device)
        if e % 5 == 0:
            print(f"epoch {e}: mae {mae.item():.3f}")


main()
