"""Autoregressive voice model over mu-law codes."""
import math
import os

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

TINY = os.environ.get("TINY") == "1"
LEVELS = 256
LENGTH = 2048 if TINY else 32768
BATCH = 4 if TINY else 32
STEPS = 4 if TINY else 250
WORKERS = 2 if TINY else 14


def compress(value):
    y = math.copysign(math.log1p(255 * abs(value)) / math.log1p(255), value)
    return int((y + 1) / 2 * 255 + 0.5)


class Voices(Dataset):
    """Harmonic tones with vibrato, as 8-bit codes."""

    def __init__(self, count):
        self.count = count
        self.time = np.arange(LENGTH + 1, dtype=np.float64) / 16000

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        rng = np.random.default_rng(index)
        pitch = rng.uniform(80, 300)
        phase = 2 * np.pi * pitch * self.time
        wave = 0.6 * np.sin(phase) + 0.3 * np.sin(2 * phase + 1)
        wave += rng.normal(0, 0.02, wave.shape)
        wave = np.clip(wave, -1, 1)
        codes = np.vectorize(compress, otypes=[np.int64])(wave)  # flaw: slow-sample-line
        return torch.from_numpy(codes)


class Causal(nn.Module):
    def __init__(self, width, dilation):
        super().__init__()
        self.pad = dilation
        self.mix = nn.Conv1d(width, 2 * width, 2, dilation=dilation)
        self.out = nn.Conv1d(width, width, 1)

    def forward(self, x):
        return x + self.out(F.glu(self.mix(F.pad(x, (self.pad, 0))), dim=1))


class Voice(nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        self.codes = nn.Embedding(LEVELS, width)
        self.stack = nn.Sequential(*[Causal(width, 2 ** (i % 8)) for i in range(layers)])
        self.head = nn.Conv1d(width, LEVELS, 1)

    def forward(self, codes):
        x = self.codes(codes).transpose(1, 2)
        return self.head(self.stack(x))


if __name__ == "__main__":
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    model = Voice(16 if TINY else 32, 3 if TINY else 6).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    loader = DataLoader(Voices(STEPS * BATCH), batch_size=BATCH, num_workers=WORKERS,
                        pin_memory=device.type == "cuda", persistent_workers=True)
    seen = torch.zeros((), device=device)
    for codes in loader:
        codes = codes.to(device, non_blocking=True)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            logits = model(codes[:, :-1])
            loss = F.cross_entropy(logits.float(), codes[:, 1:])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        seen += loss.detach()
    print(f"mean loss {seen.item() / STEPS:.3f}")
