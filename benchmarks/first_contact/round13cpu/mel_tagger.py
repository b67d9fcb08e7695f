# Tags short audio clips: log-mel front end inside the model, small conv net behind it.
import math

import torch
from torch import nn

RATE = 16_000
N_FFT = 512
HOP = 256
MELS = 64
CLIP = 16_000
BATCH = 16
STEPS = 800


def hz_to_mel(f):
    return 2595.0 * math.log10(1.0 + f / 700.0)


def mel_to_hz(m):
    return 700.0 * (10.0 ** (m / 2595.0) - 1.0)


def mel_bank(n_mels, n_freq, rate):
    """Triangular filters, averaged over a fine grid inside every bin so that narrow filters keep their area."""
    fine = 64
    lo, hi = hz_to_mel(20.0), hz_to_mel(rate / 2)
    edges = mel_to_hz_tensor(torch.linspace(lo, hi, n_mels + 2))
    freq = torch.linspace(0, rate / 2, n_freq * fine)
    left, mid, right = edges[:-2, None], edges[1:-1, None], edges[2:, None]
    up = (freq - left) / (mid - left)
    down = (right - freq) / (right - mid)
    tri = torch.minimum(up, down).clamp_(min=0)
    bank = tri.view(n_mels, n_freq, fine).mean(-1)
    return bank / bank.sum(1, keepdim=True)


def mel_to_hz_tensor(m):
    return 700.0 * (torch.pow(10.0, m / 2595.0) - 1.0)


class LogMel(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("window", torch.hann_window(N_FFT))

    def forward(self, wave):
        spec = torch.stft(wave, N_FFT, HOP, window=self.window, return_complex=True)
        power = torch.view_as_real(spec).square().sum(-1)
        bank = mel_bank(MELS, N_FFT // 2 + 1, RATE)  # flaw: constant-rebuilt
        mel = torch.matmul(bank, power)
        return mel.add_(1e-6).log_().unsqueeze(1)


class Tagger(nn.Sequential):
    def __init__(self, tags):
        super().__init__(
            LogMel(),
            nn.Conv2d(1, 16, 5, stride=2, padding=2), nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(32, 48, 3, stride=2, padding=1), nn.ReLU(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(48, tags),
        )


torch.manual_seed(0)
time_axis = torch.arange(CLIP) / RATE
pitches = torch.tensor([180.0, 330.0, 640.0, 1250.0, 2300.0, 4100.0])
tones = torch.sin(2 * math.pi * pitches[:, None] * time_axis)
model = Tagger(len(pitches))
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, fused=True)
criterion = nn.BCEWithLogitsLoss()

total = torch.zeros(())
for step in range(STEPS):
    tags = (torch.rand(BATCH, len(pitches)) < 0.3).float()
    wave = tags @ tones + 0.3 * torch.randn(BATCH, CLIP)
    loss = criterion(model(wave), tags)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss.detach()
print("mean loss", round(float(total) / STEPS, 4))
