"""Spectral denoiser: waveform in, masked STFT magnitudes out."""
import os

import torch
import torch.nn.functional as F
from torch import nn

if "SMALL" in os.environ:
    CLIP, CLIPS, HOP, FFT, WIDTH, DEPTH, STEPS = 4000, 2, 64, 254, 32, 2, 30
else:
    CLIP, CLIPS, HOP, FFT, WIDTH, DEPTH, STEPS = 48000, 48, 128, 510, 768, 6, 80


def add_noise(clean, level, device):
    noise = torch.randn(clean.shape)  # flaw: tensor-made-on-host
    return clean + level * noise.to(device)  # flaw: tensor-made-on-host


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.a = nn.Linear(WIDTH, 2 * WIDTH)
        self.b = nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.b(F.gelu(self.a(self.norm(x))))


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        bins = FFT // 2 + 1
        self.register_buffer("window", torch.hann_window(FFT))
        self.body = nn.Sequential(nn.Linear(bins, WIDTH), *[Residual() for _ in range(DEPTH)], nn.Linear(WIDTH, bins))

    def magnitudes(self, wave):
        return torch.stft(wave, FFT, HOP, window=self.window, return_complex=True).abs().transpose(1, 2)

    def forward(self, wave):
        size = self.magnitudes(wave)
        with torch.autocast(wave.device.type, dtype=torch.bfloat16):
            mask = self.body(size).sigmoid()
        return size * mask.float()


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = Denoiser().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4, fused=True)
    clips = torch.randn(8, CLIPS, CLIP, device=device).cumsum(-1).mul_(0.01)
    tally = torch.zeros((), device=device)
    for step in range(STEPS):
        clean = clips[step % len(clips)]
        noisy = add_noise(clean, 0.1 + 0.01 * (step % 10), device)
        loss = F.l1_loss(model(noisy), model.magnitudes(clean))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        tally += loss.detach()
    print("l1", tally.item() / STEPS)


if __name__ == "__main__":
    main()
