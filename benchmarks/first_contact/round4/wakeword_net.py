import os

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SMALL = os.environ.get("SMALL") == "1"
RATE = 16_000
CLIP = 1600 if SMALL else RATE
FRAME = 160


def trigger(rng):
    t = np.arange(CLIP, dtype=np.float32) / RATE
    return np.sin(2 * np.pi * (300 + 900 * t / t[-1]) * t).astype(np.float32) * rng.uniform(0.2, 1.0)


class WakeWords(Dataset):
    def __init__(self, count, seed=0):
        rng = np.random.default_rng(seed)
        self.noise = rng.standard_normal(CLIP * 40, dtype=np.float32) * 0.1
        self.word = trigger(rng).astype(np.float32)
        self.start = rng.integers(0, CLIP * 38, size=count)
        self.label = rng.integers(0, 2, size=count)

    def __len__(self):
        return len(self.start)

    def loudness(self, wav):
        chunks = wav.reshape(-1, FRAME)
        return np.array([max(abs(s) for s in chunk) for chunk in chunks], dtype=np.float32)  # flaw: slow-sample-line

    def __getitem__(self, i):
        s = self.start[i]
        wav = self.noise[s:s + CLIP]
        if self.label[i]:
            wav = wav + self.word
        gate = self.loudness(wav)
        frames = wav.reshape(-1, FRAME) / (gate[:, None] + 1e-3)
        return torch.from_numpy(frames), torch.tensor(float(self.label[i]))


class WakeNet(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.front = nn.Linear(FRAME, width)
        self.rnn = nn.GRU(width, width, num_layers=depth, batch_first=True, bidirectional=True)
        self.back = nn.Linear(2 * width, 1)

    def forward(self, frames):
        h, _ = self.rnn(self.front(frames))
        return self.back(h.mean(1)).squeeze(-1)


def main():
    width, depth, batch, steps, workers = (16, 1, 4, 30, 1) if SMALL else (512, 2, 128, 70, 8)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    loader = DataLoader(WakeWords(batch * steps), batch_size=batch, shuffle=True, num_workers=workers,
                        pin_memory=device.type == "cuda", drop_last=True, prefetch_factor=4)
    net = WakeNet(width, depth).to(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
    criterion = nn.BCEWithLogitsLoss()
    net.train()
    for i, (frames, label) in enumerate(loader):
        frames, label = frames.to(device, non_blocking=True), label.to(device, non_blocking=True)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            score = net(frames)
        loss = criterion(score.float(), label)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if i % 20 == 0:
            print(f"batch {i:3d} loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
