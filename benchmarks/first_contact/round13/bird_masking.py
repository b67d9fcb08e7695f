"""Bird-call classifier on log-mel spectrograms with time and frequency masking."""
import os
import time
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

TINY = os.environ.get("TINY") == "1"
DEV = torch.device("cuda" if torch.cuda.is_available() else "cpu")
CUDA = DEV.type == "cuda"


@dataclass
class MaskPolicy:
    frames: int
    mels: int
    rounds: int = 2
    widest_time: int = 24
    widest_mel: int = 20
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(6))

    def spans(self, count, size, widest):
        width = self.rng.integers(1, widest + 1, (self.rounds, count))
        first = (self.rng.random((self.rounds, count)) * (size - width)).astype(np.int64)
        return first, first + width

    def __call__(self, spec):
        count = len(spec)
        t0, t1 = self.spans(count, self.frames, self.widest_time)
        m0, m1 = self.spans(count, self.mels, self.widest_mel)
        spec = spec.clone()
        for clip, a, b, c, d in zip(spec, t0.T, t1.T, m0.T, m1.T):  # flaw: python-loop-over-tensor
            for r in range(self.rounds):  # flaw: python-loop-over-tensor
                clip[a[r]:b[r]].zero_()  # flaw: python-loop-over-tensor
                clip[:, c[r]:d[r]].zero_()  # flaw: python-loop-over-tensor
        return spec


class FrameNet(nn.Module):
    """Per-frame network, average over time, then the species."""

    def __init__(self, mels, width, species):
        super().__init__()
        self.frame = nn.Sequential(
            nn.Linear(mels, width), nn.ReLU(inplace=True),
            nn.Linear(width, width), nn.ReLU(inplace=True),
            nn.Linear(width, 512))
        self.species = nn.Linear(512, species)

    def forward(self, spec):
        return self.species(self.frame(spec).mean(1))


class Recordings:
    def __init__(self, count, frames, mels, species):
        g = torch.Generator(device=DEV).manual_seed(40)
        self.label = torch.randint(species, (count,), device=DEV, generator=g)
        call = torch.randn(species, 1, mels, device=DEV, generator=g)
        noise = torch.randn(count, frames, mels, device=DEV, generator=g)
        self.spec = (noise + 0.2 * call[self.label]).to(torch.bfloat16 if CUDA else torch.float32)

    def batches(self, size, total):
        g = torch.Generator(device=DEV).manual_seed(41)
        for _ in range(total):
            rows = torch.randint(len(self.label), (size,), device=DEV, generator=g)
            yield self.spec[rows], self.label[rows]


def train(frames, mels, width, species, count, size, total):
    torch.manual_seed(3)
    torch.set_float32_matmul_precision("high")
    net = FrameNet(mels, width, species).to(DEV)
    opt = torch.optim.AdamW(net.parameters(), lr=3e-4, weight_decay=0.02, fused=CUDA)
    mask = MaskPolicy(frames, mels)
    curve = torch.zeros(total, device=DEV)
    t0 = time.perf_counter()
    for i, (spec, label) in enumerate(Recordings(count, frames, mels, species).batches(size, total)):
        spec = mask(spec)
        with torch.autocast(DEV.type, torch.bfloat16, enabled=CUDA):
            loss = F.cross_entropy(net(spec), label)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        curve[i] = loss.detach()
    print(f"loss {curve.mean().item():.5f} -> {curve[-1].item():.5f}")
    print(f"{time.perf_counter() - t0:.2f} s")


if __name__ == "__main__":
    if TINY:
        train(32, 32, 64, 16, 128, 16, 60)
    else:
        train(128, 128, 2048, 256, 16384, 1024, 320)
