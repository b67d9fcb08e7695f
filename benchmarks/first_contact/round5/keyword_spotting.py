import argparse
import os

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class SpeechCommands(Dataset):
    """One-second clips at 16 kHz with light augmentation."""

    def __init__(self, n, samples, classes, seed=0):
        rng = np.random.default_rng(seed)
        self.bank = rng.standard_normal((256, samples), dtype=np.float32)
        self.labels = rng.integers(0, classes, n)
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        rng = np.random.default_rng(i)
        wav = self.bank[i % 256]
        wav = np.roll(wav, int(rng.integers(-1600, 1600)))
        gain = np.float32(rng.uniform(0.7, 1.3))
        wav = wav * gain
        wav = np.asarray([cur - 0.97 * prev for prev, cur in zip(wav[:-1], wav[1:])], dtype=np.float32)  # flaw: slow-sample-line
        return torch.from_numpy(wav), int(self.labels[i])


class Frontend(nn.Module):
    def __init__(self, mels):
        super().__init__()
        self.register_buffer("window", torch.hann_window(512))
        self.register_buffer("bank", torch.rand(257, mels) / 257)

    def forward(self, wav):
        spec = torch.stft(wav, 512, 160, window=self.window, return_complex=True)
        return torch.log1p(spec.abs().transpose(1, 2) @ self.bank)


class KWS(nn.Module):
    def __init__(self, mels, width, layers, classes):
        super().__init__()
        self.front = Frontend(mels)
        self.inp = nn.Linear(mels, width)
        self.rnn = nn.GRU(width, width, layers, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * width, classes)

    def forward(self, wav):
        h, _ = self.rnn(self.inp(self.front(wav)))
        return self.out(h.mean(1))


def get_args():
    small = os.getenv("SMALL") == "1"
    p = argparse.ArgumentParser()
    p.add_argument("--batch-size", type=int, default=8 if small else 256)
    p.add_argument("--steps", type=int, default=30 if small else 70)
    p.add_argument("--samples", type=int, default=4000 if small else 16000)
    p.add_argument("--width", type=int, default=16 if small else 512)
    p.add_argument("--layers", type=int, default=1 if small else 3)
    p.add_argument("--workers", type=int, default=1 if small else 12)
    p.add_argument("--lr", type=float, default=3e-4)
    return p.parse_args()


def run(args):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    data = SpeechCommands(args.steps * args.batch_size, args.samples, 35)
    loader = DataLoader(data, args.batch_size, shuffle=True, num_workers=args.workers, pin_memory=device.type == "cuda",
                        prefetch_factor=4, drop_last=True)
    net = KWS(64, args.width, args.layers, 35).to(device)
    opt = torch.optim.Adam(net.parameters(), args.lr, fused=True)
    ce = nn.CrossEntropyLoss()
    total = torch.zeros((), device=device)
    for wav, y in loader:
        wav, y = wav.to(device, non_blocking=True), y.to(device, non_blocking=True)
        with torch.autocast(device.type, torch.bfloat16):
            loss = ce(net(wav), y)
        loss.backward()
        opt.step()
        opt.zero_grad()
        total += loss.detach()
    print("mean loss", (total / args.steps).item())


if __name__ == "__main__":
    run(get_args())
