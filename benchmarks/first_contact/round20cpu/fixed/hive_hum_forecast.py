"""Forecasts the hum of beehives: a causal model of spectrogram frames predicts the next frame."""
import argparse
import itertools

import torch
import torch.nn.functional as F
from torch import nn


class Listening(nn.Module):
    """One wide head looks back over all frames."""

    def __init__(self, width):
        super().__init__()
        self.to_q, self.to_k, self.to_v = (nn.Linear(width, width, bias=False) for _ in range(3))
        self.mix = nn.Linear(width, width)

    def forward(self, x):
        q, k, v = self.to_q(x), self.to_k(x), self.to_v(x)
        back = F.scaled_dot_product_attention(q[:, None], k[:, None], v[:, None], is_causal=True)[:, 0]
        return self.mix(back)


class Stage(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.listening = Listening(width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        x = x + self.listening(self.first(x))
        return x + self.down(F.silu(self.up(self.second(x))))


class HumModel(nn.Module):
    def __init__(self, bands, frames, width, depth):
        super().__init__()
        self.enter = nn.Linear(bands, width)
        self.when = nn.Parameter(0.02 * torch.randn(frames, width))
        self.stages = nn.Sequential(*(Stage(width) for _ in range(depth)))
        self.leave = nn.Linear(width, bands)

    def forward(self, frames):
        return self.leave(self.stages(self.enter(frames) + self.when))


def hives(count, frames, bands):
    """Slow swells of a few tones with noise."""
    time = torch.arange(frames + 1)[None, :, None] / 40
    pitch = torch.rand(count, 1, bands) * 3
    phase = torch.rand(count, 1, bands) * 6
    swell = torch.sin(pitch * time + phase) * torch.sin(0.5 * time + phase[:, :, :1])
    return swell + 0.1 * torch.randn(count, frames + 1, bands)


def batches(recordings, rows):
    for _ in itertools.count():
        for pick in torch.randperm(len(recordings)).split(rows):
            yield recordings[pick]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=768)
    parser.add_argument("--bands", type=int, default=40)
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--depth", type=int, default=2)
    parser.add_argument("--rows", type=int, default=3)
    parser.add_argument("--updates", type=int, default=320)
    args = parser.parse_args()

    torch.manual_seed(7)
    recordings = hives(240, args.frames, args.bands)
    model = HumModel(args.bands, args.frames, args.width, args.depth)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    for update, clips in enumerate(itertools.islice(batches(recordings, args.rows), args.updates), 1):
        guess = model(clips[:, :-1])
        loss = F.mse_loss(guess, clips[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if update % 40 == 0:
            print(f"update {update:4d}  error {loss.item():.4f}")


if __name__ == "__main__":
    main()
