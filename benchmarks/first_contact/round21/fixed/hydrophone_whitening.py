"""Score hours of hydrophone recordings for whale calls.

Frames go through a frozen encoder. Before each of its two stages the features are whitened by the mean and
the deviation of their own chunk (ships and rain change them slowly), which a Triton kernel collects in one
pass over the chunk.
"""
from collections import deque

import torch
from torch import nn

try:
    import triton
    import triton.language as tl
except ImportError:  # machines without a GPU
    triton = None

CHUNK = 98304
CHANNELS = 1024
CALLS = 64
CHUNKS = 900
SEED = 31
PARTS = 128

if triton is not None:

    @triton.jit
    def moments_kernel(x_ptr, sum_ptr, square_ptr, rows, cols, ROWS: tl.constexpr, COLS: tl.constexpr):
        col = tl.program_id(0) * COLS + tl.arange(0, COLS)
        total = tl.zeros((COLS,), dtype=tl.float32)
        square = tl.zeros((COLS,), dtype=tl.float32)
        part = tl.program_id(1)
        for start in range(part * ROWS, rows, tl.num_programs(1) * ROWS):
            row = start + tl.arange(0, ROWS)
            tile = tl.load(x_ptr + row[:, None] * cols + col[None, :], mask=row[:, None] < rows, other=0.0)
            tile = tile.to(tl.float32)
            total += tl.sum(tile, axis=0)
            square += tl.sum(tile * tile, axis=0)
        tl.store(sum_ptr + part * cols + col, total)
        tl.store(square_ptr + part * cols + col, square)


def moments(x):
    """Mean and reciprocal deviation of each column of a contiguous matrix."""
    rows, cols = x.shape
    if x.is_cuda:
        total = torch.empty(PARTS, cols, device=x.device, dtype=torch.float32)
        square = torch.empty(PARTS, cols, device=x.device, dtype=torch.float32)
        moments_kernel[(cols // 128, PARTS)](x, total, square, rows, cols, ROWS=32, COLS=128)
        total, square = total.sum(0), square.sum(0)
    else:
        total, square = x.float().sum(0), x.float().square().sum(0)
    mean = total / rows
    scale = (square / rows - mean * mean).clamp_min(1e-6).rsqrt()
    return mean, scale


class Whitened(nn.Module):
    """Linear layer on whitened features: the mean and the scale go into the weight, not over the chunk."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outputs, inputs) / inputs**0.5)

    def forward(self, x):
        mean, scale = moments(x)
        weight = (self.weight * scale).to(x.dtype)
        return nn.functional.linear(x, weight, -(weight @ mean.to(x.dtype)))


class Stage(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.entry = Whitened(width, width)
        self.wide = nn.Linear(width, hidden)
        self.back = nn.Linear(hidden, width)

    def forward(self, x):
        x = self.entry(x)
        return self.back(nn.functional.gelu(self.wide(x), approximate="tanh"))


def recordings(count, device):
    """Chunks of frames: coloured noise whose level drifts, cut from a long stretch that is on the device."""
    g = torch.Generator(device=device).manual_seed(SEED)
    stretch = torch.randn(CHUNK * 3, CHANNELS, generator=g, device=device, dtype=torch.float32).to(torch.bfloat16)
    colour = torch.linspace(0.3, 2.0, CHANNELS, device=device, dtype=torch.bfloat16)
    stretch.mul_(colour)
    for number in range(count):
        start = number * 4096 % (2 * CHUNK)
        yield stretch[start : start + CHUNK]


@torch.inference_mode()
def scan(device, count=CHUNKS):
    torch.manual_seed(SEED)
    encoder = nn.Sequential(Stage(CHANNELS, 4 * CHANNELS), Stage(CHANNELS, 4 * CHANNELS), nn.Linear(CHANNELS, CALLS))
    encoder = encoder.to(device, torch.bfloat16).eval()
    loudest = deque(maxlen=50)
    for number, frames in enumerate(recordings(count, device), start=1):
        scores = encoder(frames)
        loudest.append(scores.amax(0))
        if number % 100 == 0:
            recent = torch.stack(tuple(loudest)).float()
            print(f"chunk {number}: mean peak {recent.mean().item():.3f}, highest {recent.max().item():.3f}")


if __name__ == "__main__":
    scan("cuda" if torch.cuda.is_available() else "cpu")
