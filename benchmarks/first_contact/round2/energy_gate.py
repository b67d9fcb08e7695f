"""Sparse training on long recordings: the energy of each channel decides its weight in the loss."""
import torch
import torch.nn as nn

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

device = "cuda" if torch.cuda.is_available() else "cpu"
CHANNELS, SAMPLES = (16, 8 * 1024 * 1024) if device == "cuda" else (16, 64 * 1024)

if triton is not None:
    @triton.jit
    def _energy(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
        row = tl.program_id(0).to(tl.int64)
        acc = tl.zeros((BLOCK,), tl.float32)
        for start in range(0, n, BLOCK):
            cols = start + tl.arange(0, BLOCK)
            v = tl.load(x_ptr + row * n + cols, mask=cols < n, other=0.0)
            acc += v * v
        tl.store(out_ptr + row, tl.sum(acc, 0) / n)


def energy(x):
    if triton is None or not x.is_cuda:
        return x.square().mean(1)
    out = torch.empty(x.shape[0], device=x.device)
    grid = (x.shape[0],)  # flaw: small-grid
    _energy[grid](x, out, x.shape[1], BLOCK=4096, num_warps=8)  # flaw: small-grid
    return out


class Frames(nn.Module):
    def __init__(self, frame=1024, width=1024):
        super().__init__()
        self.frame = frame
        self.net = nn.Sequential(nn.Linear(frame, width), nn.GELU(), nn.Linear(width, width), nn.GELU(), nn.Linear(width, 8))

    def forward(self, x, start, count):
        cut = x[:, start:start + count * self.frame].view(x.shape[0], count, self.frame)
        return self.net(cut).float().mean(1)


def main():
    x = torch.randn(CHANNELS, SAMPLES, device=device)
    y = torch.randint(0, 8, (CHANNELS,), device=device)
    net = Frames().to(device)
    opt = torch.optim.AdamW(net.parameters(), 1e-4, fused=True)
    count = 1024 if device == "cuda" else 8
    for i in range(600):
        weight = energy(x)
        start = (i % 4) * count * 1024
        with torch.autocast(device, dtype=torch.bfloat16):
            scores = net(x, start, count)
        each = nn.functional.cross_entropy(scores, y, reduction="none")
        loss = (each * weight).mean()
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if i % 100 == 0:
            print(i, loss.item())


if __name__ == "__main__":
    main()
