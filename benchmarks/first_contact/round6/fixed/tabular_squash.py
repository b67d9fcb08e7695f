"""Classifier on a very wide numeric table; a Triton kernel scales and squashes the raw columns."""
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

tiny = bool(os.environ.get("SMALL"))
ROWS, COLS, HIDDEN, STEPS = (64, 32, 16, 30) if tiny else (131072, 2048, 512, 120)
device = "cuda" if torch.cuda.is_available() else "cpu"

if triton is not None:

    @triton.jit
    def squash_kernel(x_ptr, mean_ptr, inv_ptr, out_ptr, rows, cols, BLOCK: tl.constexpr):
        row = tl.program_id(0)
        col = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
        keep = col < cols
        at = row * cols + col
        x = tl.load(x_ptr + at, mask=keep, other=0.0)
        z = (x - tl.load(mean_ptr + col, mask=keep)) * tl.load(inv_ptr + col, mask=keep)
        y = z / (1.0 + tl.abs(z))
        tl.store(out_ptr + at, y.to(tl.bfloat16), mask=keep)


class Squash(nn.Module):
    def __init__(self, sample):
        super().__init__()
        self.register_buffer("mean", sample.mean(0))
        self.register_buffer("inv", sample.std(0).reciprocal())

    def forward(self, x):
        if not x.is_cuda:
            z = (x - self.mean) * self.inv
            return (z / (1 + z.abs())).to(torch.bfloat16)
        out = torch.empty(x.shape, device=x.device, dtype=torch.bfloat16)
        rows, cols = x.shape
        block = 256
        grid = (rows, triton.cdiv(cols, block))
        squash_kernel[grid](x, self.mean, self.inv, out, rows, cols, BLOCK=block)
        return out


class Classifier(nn.Module):
    def __init__(self, sample):
        super().__init__()
        self.squash = Squash(sample)
        self.net = nn.Sequential(nn.Linear(COLS, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 8))

    def forward(self, x):
        return self.net(self.squash(x))


def main():
    torch.manual_seed(0)
    shards = [torch.randn(ROWS, COLS, device=device) * (k + 1) for k in range(2)]
    labels = [s[:, :8].argmax(1) for s in shards]
    net = Classifier(shards[0][:1000]).to(device)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
    for step in range(STEPS):
        with torch.autocast(device, torch.bfloat16):
            loss = F.cross_entropy(net(shards[step % 2]), labels[step % 2])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 30 == 0:
            print(step, f"{loss.item():.4f}")


if __name__ == "__main__":
    main()
