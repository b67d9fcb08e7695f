#!/usr/bin/env python
"""Train a command recogniser on waveforms with simulated rooms."""
import argparse
import os

import numpy as np
import torch
import torch.nn as nn
import torch.utils.data as tud

tiny = bool(os.environ.get("SMALL"))

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--batch", type=int, default=4 if tiny else 64)
parser.add_argument("--samples", type=int, default=2048 if tiny else 16000)
parser.add_argument("--steps", type=int, default=30 if tiny else 100)
parser.add_argument("--jobs", type=int, default=1 if tiny else 12, help="processes that simulate rooms")
parser.add_argument("--lr", type=float, default=3e-4)


class Rooms(tud.Dataset):
    """Dry recordings, convolved with a random decaying impulse response in the frequency domain."""

    def __init__(self, n, samples):
        self.n = n
        rng = np.random.default_rng(5)
        self.dry = rng.standard_normal((200, samples), dtype=np.float32)
        self.decay = np.exp(-np.linspace(0, 9, samples, dtype=np.float32))

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        rng = np.random.default_rng(i)
        room = rng.standard_normal(self.decay.size, dtype=np.float32) * self.decay
        size = 2 * self.decay.size
        wet = np.fft.irfft(np.fft.rfft(self.dry[i % 200], size) * np.fft.rfft(room, size), size)
        wet = wet[: self.decay.size].astype(np.float32)
        return wet / np.abs(wet).max(), i % 12


class Net(nn.Module):
    def __init__(self, samples, d):
        super().__init__()
        self.frame = nn.Linear(160, d)
        enc = nn.TransformerEncoderLayer(d, max(1, d // 64), 4 * d, 0.0, "gelu", batch_first=True, norm_first=True)
        self.enc = nn.TransformerEncoder(enc, 1 if tiny else 8, enable_nested_tensor=False)
        self.cls = nn.Linear(d, 12)

    def forward(self, wave):
        usable = wave.shape[1] // 160 * 160
        return self.cls(self.enc(self.frame(wave[:, :usable].unflatten(1, (-1, 160)))).mean(1))


def main(args):
    dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    loader = tud.DataLoader(
        Rooms(args.batch * args.steps, args.samples), args.batch,
        num_workers=args.jobs, pin_memory=dev.type == "cuda", prefetch_factor=4,
    )
    net = Net(args.samples, 64 if tiny else 1024).to(dev)
    opt = torch.optim.AdamW(net.parameters(), args.lr, fused=True)
    hits = torch.zeros((), device=dev)
    for step, (wave, y) in enumerate(loader):
        wave, y = wave.to(dev, non_blocking=True), y.to(dev, non_blocking=True)
        with torch.autocast(dev.type, torch.bfloat16):
            out = net(wave)
        loss = nn.functional.cross_entropy(out.float(), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        hits += (out.argmax(1) == y).sum()
        if step % 25 == 24:
            print(f"step {step + 1}: accuracy {hits.item() / (step + 1) / args.batch:.3f}")


if __name__ == "__main__":
    main(parser.parse_args())
