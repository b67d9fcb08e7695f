import os
import sys
import time

import torch
from torch import nn

TINY = "TINY" in os.environ


class VoiceEncoder(nn.Module):
    """Summary token, convolution over mel frames, two transformer layers."""

    def __init__(self, mels=40, width=160):
        super().__init__()
        self.front = nn.Linear(mels, width)
        self.summary = nn.Parameter(torch.randn(1, 1, width) * 0.02)
        layer = nn.TransformerEncoderLayer(width, 4, 256, dropout=0.0, batch_first=True, norm_first=False)
        self.body = nn.TransformerEncoder(layer, 2)

    def forward(self, frames):
        x = torch.cat((self.summary.expand(len(frames), -1, -1), self.front(frames)), 1)
        return self.body(x)


class Enrolment:
    def __init__(self, encoder):
        self.encoder = encoder.eval()
        self.prints = {}

    def add(self, speakers, frames):
        summary, *_ = self.encoder(frames).split((1, frames.size(1)), dim=1)
        for who, vec in zip(speakers, summary.squeeze(1)):
            self.prints.setdefault(who, []).append(vec)  # flaw: memory-growth

    def centroids(self):
        return torch.stack([torch.stack(v).mean(0) for v in self.prints.values()])


def recordings(batches, size, frames, people):
    gen = torch.Generator().manual_seed(17)
    voice = torch.randn(people, 40, generator=gen)
    for _ in range(batches):
        who = torch.randint(people, (size,), generator=gen)
        yield who.tolist(), voice[who][:, None] + torch.randn(size, frames, 40, generator=gen)


def main():
    torch.manual_seed(0)
    desk = Enrolment(VoiceEncoder())
    batches = 4 if TINY else 100
    began = time.perf_counter()
    with torch.inference_mode():
        for who, frames in recordings(batches, *((4, 20, 5) if TINY else (24, 300, 60))):
            desk.add(who, frames)
        print(f"{(time.perf_counter() - began) / batches * 1e3:.1f} ms", file=sys.stderr)
        c = nn.functional.normalize(desk.centroids(), dim=1)
        close = (c @ c.T).fill_diagonal_(-1).amax(1)
    print(f"{len(c)} speakers, nearest other {close.mean().item():.4f}")


main()
