"""Fill gaps in borehole radargrams: long runs of neighbouring traces, of which a mixer sees three patches in four."""

import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
TRACES, SAMPLES = 20_000, 8192
RUN, PATCH, WIDTH = 1024, 256, 512
STEPS = 600


def survey(seed=17):
    """Reflections that drift slowly with depth, under noise, as one float32 table of traces."""
    rng = np.random.default_rng(seed)
    table = rng.standard_normal((TRACES, SAMPLES), dtype=np.float32)
    table *= 0.4
    depth = np.arange(SAMPLES, dtype=np.float32)
    for at in range(0, TRACES, 500):
        echo = np.zeros(SAMPLES, dtype=np.float32)
        for place in rng.uniform(0, SAMPLES, 12):
            echo += np.cos((depth - place) / 9) * np.exp(-(((depth - place) / 60) ** 2))
        table[at : at + 500] += echo
    return table


class Archive:
    """The survey in host memory, read in runs that begin anywhere."""

    def __init__(self, table):
        self.traces = torch.from_numpy(table)  # flaw: pageable-host-copy

    def __len__(self):
        return len(self.traces)

    def runs(self, count, size, seed=0):
        rng = np.random.default_rng(seed)
        for start in rng.integers(0, len(self) - size, count).tolist():
            yield self.traces[start : start + size].to(device, non_blocking=True)


class MixerBlock(nn.Module):
    def __init__(self, places):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.along = nn.Linear(places, places)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        x = x + self.along(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class GapFiller(nn.Module):
    def __init__(self, places=SAMPLES // PATCH, depth=4):
        super().__init__()
        self.embed = nn.Linear(PATCH, WIDTH)
        self.where = nn.Parameter(torch.randn(places, WIDTH) * 0.02)
        self.gap = nn.Parameter(torch.zeros(WIDTH))
        self.blocks = nn.Sequential(*[MixerBlock(places) for _ in range(depth)])
        self.norm = nn.LayerNorm(WIDTH)
        self.read = nn.Linear(WIDTH, PATCH)

    def forward(self, patches, hidden):
        x = torch.where(hidden[..., None], self.gap.to(torch.bfloat16), self.embed(patches))
        return self.read(self.norm(self.blocks(x + self.where)))


def train():
    torch.manual_seed(5)
    archive = Archive(survey())
    model = GapFiller().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, fused=True)
    chance = torch.Generator(device=device).manual_seed(9)
    error = torch.zeros((), device=device)
    began = time.perf_counter()
    for step, run in enumerate(archive.runs(STEPS, RUN), 1):
        patches = run.view(len(run), -1, PATCH)
        hidden = torch.rand(patches.shape[:2], generator=chance, device=device) < 0.25
        with torch.autocast(device, dtype=torch.bfloat16):
            made = model(patches, hidden)
            loss = F.smooth_l1_loss(made.float() * hidden[..., None], patches * hidden[..., None]) * 4
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        error += loss.detach()
        if step % 100 == 0:
            print(f"{step:4d}: {error.item() / 100:.5f}  ({(time.perf_counter() - began) / step * 1e3:.1f} ms a step)")
            error.zero_()


train()
