"""Speech frame encoder with a fused instance norm over time, written in Triton with its own backward."""
import torch
import torch.nn as nn
import torch.nn.functional as F

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

EPS = 1e-5

if triton is not None:

    @triton.jit
    def norm_forward(x_ptr, y_ptr, mean_ptr, rstd_ptr, T, C, eps, BLOCK_T: tl.constexpr, BLOCK_C: tl.constexpr):
        b = tl.program_id(0)
        c = tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)
        t = tl.arange(0, BLOCK_T)
        mask = (t[:, None] < T) & (c[None, :] < C)
        offs = b.to(tl.int64) * T * C + t[:, None] * C + c[None, :]
        x = tl.load(x_ptr + offs, mask=mask, other=0.0).to(tl.float32)
        mean = tl.sum(x, 0) / T
        d = tl.where(mask, x - mean[None, :], 0.0)
        rstd = 1.0 / tl.sqrt(tl.sum(d * d, 0) / T + eps)
        tl.store(y_ptr + offs, d * rstd[None, :], mask=mask)
        tl.store(mean_ptr + b * C + c, mean, mask=c < C)
        tl.store(rstd_ptr + b * C + c, rstd, mask=c < C)

    @triton.jit
    def norm_backward(x_ptr, dy_ptr, dx_ptr, mean_ptr, rstd_ptr, T, C, BLOCK_T: tl.constexpr, BLOCK_C: tl.constexpr):
        b = tl.program_id(0)
        c = tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)
        t = tl.arange(0, BLOCK_T)
        mask = (t[:, None] < T) & (c[None, :] < C)
        offs = b.to(tl.int64) * T * C + t[:, None] * C + c[None, :]
        x = tl.load(x_ptr + offs, mask=mask, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + offs, mask=mask, other=0.0).to(tl.float32)
        rstd = tl.load(rstd_ptr + b * C + c, mask=c < C, other=0.0)[None, :]
        mean = tl.load(mean_ptr + b * C + c, mask=c < C, other=0.0)[None, :]
        h = tl.where(mask, (x - mean) * rstd, 0.0)
        dx = rstd * (dy - tl.sum(dy, 0)[None, :] / T - h * (tl.sum(dy * h, 0)[None, :] / T))
        tl.store(dx_ptr + offs, dx, mask=mask)


def launch(kernel, b, t, c, *args):
    kernel[(b, triton.cdiv(c, 32))](*args, BLOCK_T=triton.next_power_of_2(t), BLOCK_C=32, num_warps=8)


class TimeNormFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        b, t, c = x.shape
        x = x.contiguous()
        y = torch.empty_like(x)
        mean = torch.empty(b, c, device=x.device)
        rstd = torch.empty(b, c, device=x.device)
        launch(norm_forward, b, t, c, x, y, mean, rstd, t, c, EPS)
        ctx.save_for_backward(x, mean, rstd)
        return y

    @staticmethod
    def backward(ctx, dy):
        x, mean, rstd = ctx.saved_tensors
        b, t, c = x.shape
        dx = torch.empty_like(x)
        launch(norm_backward, b, t, c, x, dy.contiguous(), dx, mean, rstd, t, c)
        return dx


def time_norm(x):
    if x.is_cuda and triton is not None:
        return TimeNormFunction.apply(x)
    return F.instance_norm(x.transpose(1, 2), eps=EPS).transpose(1, 2)


class FrameBlock(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.up, self.down = nn.Linear(dim, 2 * dim), nn.Linear(2 * dim, dim)

    def forward(self, x):
        return x + self.down(F.silu(self.up(time_norm(x))))


def main():
    cuda = torch.cuda.is_available()
    device = torch.device("cuda" if cuda else "cpu")
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    batch, frames, dim, depth, steps = (128, 512, 512, 8, 200) if cuda else (2, 24, 16, 2, 5)
    net = nn.Sequential(nn.Linear(80, dim), *[FrameBlock(dim) for _ in range(depth)], nn.Linear(dim, 80)).to(device)
    net = net.to(torch.bfloat16)
    opt = torch.optim.AdamW(net.parameters(), lr=3e-4, fused=cuda)
    corpus = torch.randn(16 * batch, frames, 80, device=device, dtype=torch.bfloat16)

    for step in range(1, steps + 1):
        feats = corpus[torch.randint(len(corpus), (batch,), device=device)]
        masked = feats * (torch.rand(batch, frames, 1, device=device) > 0.3)
        loss = F.mse_loss(net(masked), feats)
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        if step % 50 == 0 or step == steps:
            print(f"step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
