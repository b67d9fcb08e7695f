# Features are standardised per column by a custom kernel before they go into the net.
import torch
from torch import nn

try:
    import triton
    import triton.language as tl

    @triton.jit
    def standardise_kernel(X, Y, n_rows, n_cols, R: tl.constexpr):
        col = tl.program_id(0)
        total = tl.zeros((R,), tl.float32)
        square = tl.zeros((R,), tl.float32)
        for r0 in range(0, n_rows, R):
            rows = r0 + tl.arange(0, R)
            x = tl.load(X + rows * n_cols + col, mask=rows < n_rows, other=0.0)  # flaw: uncoalesced-access
            total += x
            square += x * x
        mean = tl.sum(total, 0) / n_rows
        scale = 1.0 / tl.sqrt(tl.sum(square, 0) / n_rows - mean * mean + 1e-5)
        for r0 in range(0, n_rows, R):
            rows = r0 + tl.arange(0, R)
            x = tl.load(X + rows * n_cols + col, mask=rows < n_rows, other=0.0)  # flaw: uncoalesced-access
            tl.store(Y + rows * n_cols + col, (x - mean) * scale, mask=rows < n_rows)  # flaw: uncoalesced-access
except ImportError:
    triton = None


def standardise(x):
    if triton is None or not x.is_cuda:
        return (x - x.mean(0)) * torch.rsqrt(x.var(0, unbiased=False) + 1e-5)
    y = torch.empty_like(x)
    standardise_kernel[(x.shape[1],)](x, y, x.shape[0], x.shape[1], R=1024)
    return y


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    batch = 16384
    table = torch.randn(2 * batch, 2048, device=device) * 3 + 1
    target = torch.randn(2 * batch, 8, device=device)
    net = nn.Sequential(nn.Linear(2048, 2048), nn.GELU(), nn.Linear(2048, 2048), nn.GELU(), nn.Linear(2048, 8)).to(device)
    opt = torch.optim.Adam(net.parameters(), 1e-4, fused=True)
    for i in range(500):
        rows = slice(batch * (i % 2), batch * (i % 2 + 1))
        x = standardise(table[rows])
        with torch.autocast(device, dtype=torch.bfloat16):
            y = net(x)
        loss = nn.functional.mse_loss(y.float(), target[rows])
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if i % 100 == 0:
            print(i, loss.item())


main()
