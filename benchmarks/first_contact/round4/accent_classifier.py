"""Accent classification from 16-bit clips: mel front end on the device, a small convolutional network behind it."""
import os

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

SMALL = os.environ.get("SMALL") == "1"
CLIP = 4_096 if SMALL else 16_384
ACCENTS = 16
torch.backends.cudnn.benchmark = True
torch.set_float32_matmul_precision("high")


class Clips(Dataset):
    def __init__(self, n):
        rng = np.random.default_rng(6)
        self.tape = rng.integers(-9000, 9000, size=CLIP * 60, dtype=np.int16)
        self.at = rng.integers(0, CLIP * 59, size=n)

    def __len__(self):
        return len(self.at)

    def __getitem__(self, i):
        at = int(self.at[i])
        return torch.from_numpy(self.tape[at:at + CLIP]), at % ACCENTS


class MelSpectrogram(nn.Module):
    def __init__(self, n_fft=512, hop=256, bins=64):
        super().__init__()
        self.n_fft, self.hop = n_fft, hop
        self.register_buffer("window", torch.hann_window(n_fft))
        centre = torch.linspace(2, n_fft // 2 - 2, bins)
        freq = torch.arange(n_fft // 2 + 1)[:, None]
        self.register_buffer("bank", (1 - (freq - centre).abs() / 4).clamp_min(0))

    @torch.no_grad()
    def forward(self, wav):
        wav = wav.float().mul_(1 / 32768)
        spec = torch.stft(wav, self.n_fft, self.hop, window=self.window, return_complex=True)
        power = torch.view_as_real(spec).square_().sum(-1)
        return (power.transpose(1, 2) @ self.bank).clamp_min_(1e-8).log_()


def stage(i, o, stride):
    return nn.Sequential(nn.Conv2d(i, o, 3, stride=stride, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True),
                         nn.Conv2d(o, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True))


class AccentNet(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.stages = nn.Sequential(
            nn.Conv2d(1, width, 3, stride=(2, 1), padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            stage(width, width, 1), stage(width, 2 * width, 2), stage(2 * width, 4 * width, 2))
        self.out = nn.Linear(4 * width, ACCENTS)

    def forward(self, mel):
        x = mel.unsqueeze(1).contiguous(memory_format=torch.channels_last)
        return self.out(self.stages(x).mean((2, 3)))


def main():
    width, batch, steps, workers = (8, 4, 30, 1) if SMALL else (64, 256, 80, 4)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    loader = DataLoader(Clips(batch * steps), batch, shuffle=True, num_workers=workers, drop_last=True,
                        pin_memory=device.type == "cuda", persistent_workers=True)
    front = MelSpectrogram().to(device)
    net = AccentNet(width).to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, nesterov=True, weight_decay=1e-4, fused=True)
    for step, (wav, accent) in enumerate(loader, 1):
        wav, accent = wav.to(device, non_blocking=True), accent.to(device, non_blocking=True)
        mel = front(wav)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            loss = F.cross_entropy(net(mel), accent)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 20 == 0:
            print(step, round(loss.item(), 4))


if __name__ == "__main__":
    main()
