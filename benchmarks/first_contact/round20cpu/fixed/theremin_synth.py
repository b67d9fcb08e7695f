"""Renders banks of theremin voices with a small feedback network, block after block.

Usage: python theremin_synth.py [--takes 300] [--voices 32]
"""
import argparse
import time

import torch
from torch import nn

SR = 16_000


class FeedbackVoice(nn.Module):
    """Next block of samples from the tail of the previous block and the gesture (pitch, volume, ...)."""

    def __init__(self, block=512, tail=64, gesture=8, hidden=160):
        super().__init__()
        self.block, self.tail = block, tail
        self.net = nn.Sequential(
            nn.Linear(tail + gesture, hidden), nn.GELU(),
            nn.Linear(hidden, hidden), nn.GELU(),
            nn.Linear(hidden, block), nn.Tanh(),
        )

    def forward(self, tail, gesture):
        return self.net(torch.cat((tail, gesture), dim=1))


class Renderer:
    def __init__(self, voice):
        self.voice = voice.eval()

    @torch.inference_mode()
    def __call__(self, score):
        voices, blocks, _ = score.shape
        tail = score.new_zeros(voices, self.voice.tail)
        rendered = []
        for gesture in score.unbind(1):
            block = self.voice(tail, gesture)
            tail = block[:, -self.voice.tail:]
            rendered.append(block)
        return torch.cat(rendered, dim=-1)


def gestures(voices, blocks, width, generator):
    """Smooth random hand movements, one row a voice."""
    walk = torch.randn(voices, blocks, width, generator=generator).cumsum(1)
    return torch.tanh(walk * 0.2)


class Stats:
    def __init__(self):
        self.peak, self.energy, self.seconds = 0.0, 0.0, 0.0

    def add(self, audio):
        low, high = torch.aminmax(audio)
        self.peak = max(self.peak, -low.item(), high.item())
        self.energy += torch.linalg.vector_norm(audio).item() ** 2 / audio.numel()
        self.seconds += audio.numel() / SR


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--takes", type=int, default=400)
    p.add_argument("--voices", type=int, default=32)
    p.add_argument("--blocks", type=int, default=64)
    p.add_argument("--gesture", type=int, default=8)
    p.add_argument("--seed", type=int, default=3)
    return p.parse_args()


def main():
    args = parse_args()
    torch.manual_seed(args.seed)
    generator = torch.Generator().manual_seed(args.seed)
    render = Renderer(FeedbackVoice(gesture=args.gesture))
    stats = Stats()
    started = time.perf_counter()
    for take in range(args.takes):
        audio = render(gestures(args.voices, args.blocks, args.gesture, generator))
        stats.add(audio)
        if (take + 1) % 50 == 0:
            spent = time.perf_counter() - started
            print(f"take {take + 1:4d}  peak {stats.peak:.4f}  power {stats.energy / (take + 1):.5f}"
                  f"  {stats.seconds / spent:.0f}x real time")


if __name__ == "__main__":
    main()
