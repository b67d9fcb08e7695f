"""Keyword spotting: log-mel front end and a depthwise TCN."""
import math

import torch
from torch import nn

SAMPLE_RATE = 16000
N_FFT = 512
N_MELS = 40
TOTAL = 220


def hz_to_mel(hz):
    return 2595.0 * math.log10(1.0 + hz / 700.0)


def mel_to_hz(mel):
    return 700.0 * (10.0 ** (mel / 2595.0) - 1.0)


def mel_filters(n_mels=N_MELS, n_fft=N_FFT, rate=SAMPLE_RATE):
    """Triangular filters, shape (n_mels, n_fft // 2 + 1)."""
    top = hz_to_mel(rate / 2)
    edges = [mel_to_hz(top * k / (n_mels + 1)) for k in range(n_mels + 2)]
    freqs = torch.linspace(0, rate / 2, n_fft // 2 + 1)
    bank = torch.zeros(n_mels, n_fft // 2 + 1)
    for m in range(n_mels):
        lo, mid, hi = edges[m:m + 3]
        rise = (freqs - lo) / (mid - lo)
        fall = (hi - freqs) / (hi - mid)
        bank[m] = torch.minimum(rise, fall).clamp(min=0)
    return bank


class LogMel(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("window", torch.hann_window(N_FFT))

    def forward(self, wave):
        spec = torch.stft(wave, N_FFT, hop_length=320, window=self.window, return_complex=True)
        power = spec.real.square() + spec.imag.square()
        return torch.log(mel_filters() @ power + 1e-5)  # flaw: constant-rebuilt


class Spotter(nn.Module):
    def __init__(self, words=10, ch=48):
        super().__init__()
        self.front = LogMel()
        self.stem = nn.Conv1d(N_MELS, ch, 3, padding=1)
        self.mix = nn.Sequential(nn.Conv1d(ch, ch, 5, padding=2, groups=ch), nn.Conv1d(ch, ch, 1), nn.ReLU())
        self.head = nn.Linear(ch, words)

    def forward(self, wave):
        h = torch.relu(self.stem(self.front(wave)))
        return self.head((h + self.mix(h)).mean(-1))


def utterances(n, gen):
    word = torch.randint(0, 10, (n,), generator=gen)
    t = torch.arange(SAMPLE_RATE // 2) / SAMPLE_RATE
    tone = torch.sin(2 * math.pi * (300 + 250 * word[:, None]) * t)
    return tone + 0.3 * torch.randn(n, t.numel(), generator=gen), word


gen = torch.Generator().manual_seed(9)
torch.manual_seed(9)
pool, labels = utterances(256, gen)
model = Spotter()
opt = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
criterion = nn.CrossEntropyLoss()
for i in range(1, TOTAL + 1):
    pick = torch.randint(0, 256, (6,), generator=gen)
    opt.zero_grad()
    loss = criterion(model(pool[pick]), labels[pick])
    loss.backward()
    opt.step()
    if i % 110 == 0:
        print(f"iter {i} loss {loss.item():.4f}")
