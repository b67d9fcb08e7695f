"""Trains a classifier of volcanic tremor on the lines of `tremor_catalogue_lib`."""
import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader

from tremor_catalogue_lib import KINDS, TremorWindows, station_lines


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--recordings", type=int, default=416)
    parser.add_argument("--length", type=int, default=6000)
    parser.add_argument("--window", type=int, default=2048)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--lr", type=float, default=3e-4)
    parser.add_argument("--seed", type=int, default=20)
    return parser.parse_args()


def network(width=384):
    def stage(inputs):
        return nn.Sequential(nn.Linear(inputs, width), nn.LayerNorm(width), nn.ReLU(), nn.Dropout(0.1))

    return nn.Sequential(stage(512), stage(width), stage(width), nn.Linear(width, KINDS))


def run_epoch(model, loader, criterion, optimizer):
    total = torch.zeros(())
    for features, kinds in loader:
        loss = criterion(model(features), kinds)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.detach()
    return total / len(loader)


def main():
    args = parse_args()
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)  # the other core is the loader's
    dataset = TremorWindows(station_lines(args.recordings, args.length, args.seed), args.window)
    loader = DataLoader(
        dataset,
        batch_size=args.batch_size,
        shuffle=True,
        num_workers=1,
        persistent_workers=True,
        prefetch_factor=4,
        drop_last=True,
    )
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, fused=True)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(1, args.epochs + 1):
        started = time.perf_counter()
        mean = run_epoch(model, loader, criterion, optimizer)
        if epoch % 6 == 0:
            print(f"epoch {epoch:2d}  loss {mean.item():.4f}  ({time.perf_counter() - started:.2f} s)", flush=True)


if __name__ == "__main__":
    main()
