"""Calibration for 8-bit inference: largest absolute activation of each channel over many batches."""
import math
import sys

import torch
from torch import nn

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

CUDA = torch.cuda.is_available()
TOKENS, DIM, LAYERS, BATCHES = (65_536, 2048, 6, 100) if CUDA else (64, 32, 2, 3)
DTYPE = torch.bfloat16 if CUDA else torch.float32


if triton is not None:

    @triton.jit
    def channel_absmax_kernel(x_ptr, out_ptr, rows, channels, ROWS_PER_PROGRAM: tl.constexpr,
                              BLOCK: tl.constexpr, WIDTH: tl.constexpr):
        channel = tl.program_id(0) * WIDTH + tl.arange(0, WIDTH)
        first = tl.program_id(1) * ROWS_PER_PROGRAM
        best = tl.zeros((BLOCK, WIDTH), dtype=tl.float32)
        for start in range(0, ROWS_PER_PROGRAM, BLOCK):
            row = first + start + tl.arange(0, BLOCK)
            where = x_ptr + row[:, None] * channels + channel[None, :]
            inside = (row < rows)[:, None] & (channel < channels)[None, :]
            x = tl.load(where, mask=inside, other=0.0)
            best = tl.maximum(best, tl.abs(x.to(tl.float32)))
        tl.atomic_max(out_ptr + channel, tl.max(best, axis=0), mask=channel < channels)


def update_absmax(running, x):
    """running (channels,) <- max(running, |x| over the rows of x)."""
    x = x.reshape(-1, x.shape[-1])
    if not x.is_cuda:
        return torch.maximum(running, x.abs().amax(0).float(), out=running)
    rows, channels = x.shape
    grid = (triton.cdiv(channels, 64), triton.cdiv(rows, 1024))
    options = dict(ROWS_PER_PROGRAM=1024, BLOCK=64, WIDTH=64)
    channel_absmax_kernel[grid](x, running, rows, channels, **options, num_warps=4)
    return running


class Observer:
    """Attached to a linear layer; sees the layer's input before each call."""

    def __init__(self, layer):
        self.absmax = torch.zeros(layer.in_features, device=layer.weight.device)
        self.handle = layer.register_forward_pre_hook(self)

    def __call__(self, layer, inputs):
        update_absmax(self.absmax, inputs[0])

    def scale(self):
        self.handle.remove()
        return self.absmax.clamp(min=1e-6) / 127.0


class Stack(nn.Module):
    def __init__(self, dim, layers):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(dim, dim, bias=False) for _ in range(layers))
        for i, layer in enumerate(self.layers):
            nn.init.normal_(layer.weight, std=math.sqrt(2.0 / dim))
            with torch.no_grad():
                layer.weight[i::17] *= 3.0  # a few outlier channels

    def forward(self, x):
        for layer in self.layers:
            x = layer(x).relu_()
        return x


def calibration_batches(device):
    gen = torch.Generator(device).manual_seed(1)
    pool = torch.randn(2 * TOKENS, DIM, device=device, generator=gen, dtype=torch.float32).to(DTYPE)
    for i in range(BATCHES):
        shift = (i * 997) % TOKENS
        yield pool[shift:shift + TOKENS]


@torch.inference_mode()
def calibrate(model, device):
    observers = [Observer(layer) for layer in model.layers]
    checksum = torch.zeros((), device=device)
    for batch in calibration_batches(device):
        checksum += model(batch)[:64].float().mean()
    return [o.scale() for o in observers], checksum.item() / BATCHES


def main():
    device = torch.device("cuda" if CUDA else "cpu")
    torch.manual_seed(0)
    model = Stack(DIM, LAYERS).to(device, DTYPE).eval()
    scales, mean = calibrate(model, device)
    for i, scale in enumerate(scales):
        print(f"layer {i}: scale min {scale.min().item():.5f} max {scale.max().item():.5f}")
    print(f"mean output {mean:.5f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
