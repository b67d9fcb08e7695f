"""Masked pre-training on ship tracks (AIS): hide stretches of a voyage, have them filled in."""
import contextlib
import math
import os
import time

import torch
import torch.nn.functional as F
from torch import nn

TINY = os.environ.get("TINY") == "1"
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.set_float32_matmul_precision("high")


class VoyageEncoder(nn.Module):
    def __init__(self, channels=8, width=1024, heads=16, layers=6, length=256):
        super().__init__()
        self.lift = nn.Linear(channels, width)
        self.place = nn.Parameter(torch.randn(1, length, width) * 0.02)
        layer = nn.TransformerEncoderLayer(
            width, heads, 4 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.body = nn.TransformerEncoder(layer, layers, nn.LayerNorm(width), enable_nested_tensor=False)
        self.drop = nn.Linear(width, channels)

    def forward(self, tracks):
        return self.drop(self.body(self.lift(tracks) + self.place))


class Ledger:
    """Book-keeping of the phases of a run."""

    def __init__(self):
        self.calls = {}
        self.host_seconds = {}

    @contextlib.contextmanager
    def phase(self, name):
        began = time.perf_counter()
        try:
            yield self
        finally:
            self.calls[name] = self.calls.get(name, 0) + 1
            self.host_seconds[name] = self.host_seconds.get(name, 0.0) + time.perf_counter() - began


def voyages(count, length, channels, seed):
    generator = torch.Generator(DEVICE).manual_seed(seed)
    turns = torch.randn(count, length, channels, device=DEVICE, generator=generator)
    tracks = turns.cumsum(1) / math.sqrt(length)
    return tracks - tracks.mean(1, keepdim=True)


class Pretrainer:
    def __init__(self, model, tracks, batch, lr=3e-4, hidden=0.25):
        self.model = model
        self.tracks = tracks
        self.batch = batch
        self.hidden = hidden
        self.ledger = Ledger()
        self.generator = torch.Generator(DEVICE).manual_seed(11)
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr, fused=True)
        self.running = torch.zeros((), device=DEVICE)

    def draw(self):
        chosen = torch.randint(len(self.tracks), (self.batch,), device=DEVICE, generator=self.generator)
        clean = self.tracks[chosen]
        keep = torch.rand(clean.shape[:2], device=DEVICE, generator=self.generator) > self.hidden
        return clean * keep.unsqueeze(-1), clean

    def update(self):
        with self.ledger.phase("update"):
            seen, clean = self.draw()
            with torch.autocast(DEVICE.type, dtype=torch.bfloat16):
                filled = self.model(seen)
                loss = F.smooth_l1_loss(filled.float(), clean)
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()
            self.running += loss.detach()

    def fit(self, steps, every):
        self.model.train()
        for step in range(1, steps + 1):
            self.update()
            if step % every == 0:
                print(f"update {step:5d}  loss {self.running.item() / every:.5f}", flush=True)
                self.running.zero_()


def main():
    torch.manual_seed(3)
    if TINY:
        shape = dict(width=32, heads=4, layers=2, length=16)
        count, batch, steps, every = 64, 8, 40, 10
    else:
        shape = dict(width=1024, heads=16, layers=6, length=256)
        count, batch, steps, every = 20000, 128, 2000, 100
    tracks = voyages(count, shape["length"], 8, seed=5)
    trainer = Pretrainer(VoyageEncoder(**shape).to(DEVICE), tracks, batch)
    trainer.fit(steps, every)
    print("host seconds", {k: round(v, 1) for k, v in trainer.ledger.host_seconds.items()})


if __name__ == "__main__":
    main()
