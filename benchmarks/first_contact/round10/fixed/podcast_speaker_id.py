"""Speaker identification from podcast recordings: random two-second crops, TDNN, cross entropy."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

HAS_GPU = torch.cuda.is_available()
RATE = 16000 if HAS_GPU else 1000
CROP = 2 * RATE
TAPS = 65
SPEAKERS = 400 if HAS_GPU else 10
BATCH = 64 if HAS_GPU else 4
STEPS = 70 if HAS_GPU else 4
WORKERS = 12 if HAS_GPU else 0
CHANNELS = 2048 if HAS_GPU else 16


def high_pass(taps, cutoff):
    """Windowed-sinc filter against rumble."""
    n = np.arange(taps) - taps // 2
    low = np.sinc(2 * cutoff * n) * 2 * cutoff * np.hamming(taps)
    low /= low.sum()
    kernel = -low
    kernel[taps // 2] += 1.0
    return kernel.astype(np.float32)


class PodcastDataset(Dataset):
    def __init__(self, recordings, seconds=30):
        rng = np.random.default_rng(0)
        self.length = seconds * RATE
        # episodes overlap in one long array of 16-bit samples
        self.audio = rng.integers(-9000, 9000, size=self.length * 8, dtype=np.int16)
        self.starts = rng.integers(0, self.length * 7, size=recordings)
        self.speakers = rng.integers(0, SPEAKERS, size=recordings)
        self.kernel = high_pass(TAPS, 80 / 16000)

    def __len__(self):
        return len(self.starts)

    def __getitem__(self, index):
        rng = np.random.default_rng(index)
        start = self.starts[index]
        wave = self.audio[start : start + self.length]
        margin = TAPS // 2
        begin = rng.integers(margin, self.length - CROP - margin)
        wave = wave[begin - margin : begin + CROP + margin].astype(np.float32) / 32768.0
        crop = np.convolve(wave, self.kernel, mode="valid")
        gain = rng.uniform(0.5, 1.5)
        return torch.from_numpy(crop * np.float32(gain)), int(self.speakers[index])


class TDNN(nn.Module):
    def __init__(self, n_fft=512, hop=160):
        super().__init__()
        self.n_fft, self.hop = n_fft, hop
        self.register_buffer("window", torch.hann_window(n_fft))
        bins = n_fft // 2
        self.layers = nn.Sequential(
            nn.Conv2d(bins, CHANNELS, (1, 5), padding=(0, 2), bias=False),
            nn.BatchNorm2d(CHANNELS),
            nn.ReLU(inplace=True),
            nn.Conv2d(CHANNELS, CHANNELS, (1, 3), dilation=(1, 2), padding=(0, 2), bias=False),
            nn.BatchNorm2d(CHANNELS),
            nn.ReLU(inplace=True),
            nn.Conv2d(CHANNELS, CHANNELS, (1, 3), dilation=(1, 3), padding=(0, 3), bias=False),
            nn.BatchNorm2d(CHANNELS),
            nn.ReLU(inplace=True),
        )
        self.head = nn.Linear(2 * CHANNELS, SPEAKERS)

    def forward(self, wave):
        with torch.autocast(wave.device.type, enabled=False):
            spec = torch.stft(wave, self.n_fft, self.hop, window=self.window, return_complex=True)
            feats = spec[:, 1:].abs().clamp_min(1e-5).log()
        # time is the width of a picture of height one, so that channels_last applies
        x = self.layers(feats[:, :, None].to(memory_format=torch.channels_last))
        std, mean = torch.std_mean(x.float(), dim=(2, 3))
        return self.head(torch.cat([mean, std], dim=1))


def main():
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.benchmark = True
    device = torch.device("cuda" if HAS_GPU else "cpu")
    loader = DataLoader(
        PodcastDataset(BATCH * STEPS),
        batch_size=BATCH,
        num_workers=WORKERS,
        pin_memory=HAS_GPU,
        persistent_workers=WORKERS > 0,
        prefetch_factor=4 if WORKERS else None,
    )
    model = TDNN().to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    for step, (wave, speaker) in enumerate(loader):
        wave = wave.to(device, non_blocking=True)
        speaker = speaker.to(device, non_blocking=True)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            loss = F.cross_entropy(model(wave), speaker)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f}")
    print(f"last loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
