"""Scan field recordings for bird species: a residual network with LayerNorm over the channels."""

import torch
import torch.nn as nn
import torch.nn.functional as F

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
DTYPE = torch.bfloat16 if CUDA else torch.float32
MELS, FRAMES = (80, 128) if CUDA else (16, 16)
WIDTHS = (128, 256) if CUDA else (8, 16)
DEPTHS = (4, 4) if CUDA else (1, 1)
SPECIES = 264 if CUDA else 8
WINDOW_BATCH = 128 if CUDA else 4
RECORDINGS, WINDOWS = (40, 640) if CUDA else (2, 8)


class ChannelNorm(nn.Module):
    """LayerNorm over the channels of a (batch, channel, mel, frame) tensor."""

    def __init__(self, channels):
        super().__init__()
        self.norm = nn.LayerNorm(channels)

    def forward(self, x):
        x = self.norm(x.permute(0, 2, 3, 1))
        return x.permute(0, 3, 1, 2).contiguous()  # flaw: layout-churn


class ResBlock(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm1 = ChannelNorm(channels)
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1)
        self.norm2 = ChannelNorm(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x):
        y = self.conv1(F.gelu(self.norm1(x)))
        return x + self.conv2(F.gelu(self.norm2(y)))


class BirdNet(nn.Module):
    def __init__(self, channels_in=8):
        super().__init__()
        stages, previous = [], channels_in
        for number, (width, depth) in enumerate(zip(WIDTHS, DEPTHS)):
            stages.append(nn.Conv2d(previous, width, 3, stride=1 + number, padding=1))
            stages += [ResBlock(width) for _ in range(depth)]
            previous = width
        self.stages = nn.Sequential(*stages)
        self.head = nn.Linear(previous, SPECIES)

    def forward(self, x):
        return self.head(self.stages(x).mean(dim=(2, 3)))


class Scanner:
    """Best score of each species over the windows of a recording."""

    def __init__(self, model):
        self.model = model

    @torch.inference_mode()
    def scan(self, windows):
        best = torch.full((SPECIES,), -torch.inf, device=DEVICE)
        for batch in windows.split(WINDOW_BATCH):
            scores = torch.sigmoid(self.model(batch).float())
            best = torch.maximum(best, scores.amax(dim=0))
        return best


def recording():
    """Eight stacked spectrograms (four microphones, two resolutions) per window."""
    x = torch.randn(WINDOWS, 8, MELS, FRAMES, device=DEVICE, dtype=DTYPE)
    return x.contiguous(memory_format=torch.channels_last)


def main():
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.benchmark = True
    model = BirdNet().to(DEVICE, DTYPE, memory_format=torch.channels_last).eval()
    scanner = Scanner(model)
    results = torch.stack([scanner.scan(recording()) for _ in range(RECORDINGS)])
    top = results.mean(dim=0).topk(3)
    print("species", top.indices.tolist(), "scores", [round(v, 4) for v in top.values.tolist()])


if __name__ == "__main__":
    main()
