"""Name the worn part of a loom from a window of its vibration spectrum. The training loop calls back at fixed places."""

import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

CUDA = torch.cuda.is_available()
device = torch.device("cuda" if CUDA else "cpu")
LOOMS, FRAMES, BINS, PARTS = 64, 6000, 128, 12
WINDOW, BATCH, STEPS = 128, 128, 600


class Hall:
    """Spectra of all looms on the device, with the part that is worn in each stretch of 500 frames."""

    def __init__(self):
        rng = torch.Generator(device=device).manual_seed(31)
        self.worn = torch.randint(PARTS, (LOOMS, FRAMES // 500), generator=rng, device=device)
        tone = torch.randn(PARTS, BINS, generator=rng, device=device)
        self.spectra = tone[self.worn].repeat_interleave(500, 1) * 0.3
        self.spectra += torch.randn(LOOMS, FRAMES, BINS, generator=rng, device=device)
        self.known = self.worn.cpu().numpy()
        self.span = torch.arange(WINDOW, device=device)

    def windows(self, looms, starts):
        return self.spectra[looms[:, None], starts[:, None] + self.span], self.worn[looms, starts // 500]


class Balanced:
    """Draws a part first, then a stretch in which it is worn, then a place in that stretch."""

    def __init__(self, known, seed=0):
        self.rng = np.random.default_rng(seed)
        self.stretches = [np.argwhere(known == part) for part in range(PARTS)]
        self.stretches = [rows for rows in self.stretches if len(rows)]

    def draw(self, count):
        picks = []
        for part in self.rng.integers(0, len(self.stretches), count):
            rows = self.stretches[part]
            loom, stretch = rows[self.rng.integers(len(rows))]
            picks.append((loom, stretch * 500 + self.rng.integers(500 - WINDOW)))
        table = torch.tensor(np.array(picks).T.copy())
        return (table.pin_memory() if CUDA else table).to(device, non_blocking=True)


class Watcher(nn.Module):
    def __init__(self, width=384, depth=8):
        super().__init__()
        self.enter = nn.Linear(BINS, width)
        self.place = nn.Parameter(torch.randn(WINDOW, width) * 0.02)
        layer = nn.TransformerEncoderLayer(width, 6, 4 * width, 0.0, F.gelu, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.name = nn.Linear(width, PARTS)

    def forward(self, x):
        return self.name(self.layers(self.enter(x) + self.place).mean(1))


class Callback:
    def after_step(self, step, loss): ...


class Journal(Callback):
    def __init__(self, every):
        self.every = every

    def after_step(self, step, loss):
        if step % self.every == 0:
            print(f"step {step}: loss {loss.item():.3f}")


class Pace(Callback):
    """Windows a second, as a moving average of what the clock says after each step."""

    def __init__(self, every):
        self.every, self.last, self.mean = every, None, None

    def after_step(self, step, loss):
        now = time.perf_counter()
        if self.last is not None:
            took = now - self.last
            self.mean = took if self.mean is None else 0.98 * self.mean + 0.02 * took
        self.last = now
        if step % self.every == 0:
            print(f"step {step}: {BATCH / self.mean:,.0f} windows/s")


def fit(model, hall, sampler, callbacks):
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4, fused=True)
    for step in range(1, STEPS + 1):
        spectra, worn = hall.windows(*sampler.draw(BATCH))
        with torch.autocast(device.type, dtype=torch.bfloat16):
            loss = F.cross_entropy(model(spectra), worn)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        for callback in callbacks:
            callback.after_step(step, loss.detach())


if __name__ == "__main__":
    torch.manual_seed(2)
    hall = Hall()
    fit(Watcher().to(device), hall, Balanced(hall.known), [Journal(100), Pace(200)])
