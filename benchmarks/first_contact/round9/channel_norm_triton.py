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
        pid = tl.program_id(0)
        b, c = pid // C, pid % C
        t = tl.arange(0, BLOCK_T)
        offs = b.to(tl.int64) * T * C + t * C + c
        x = tl.load(x_ptr + offs, mask=t < T, other=0.0).to(tl.float32)  # flaw: uncoalesced-access
        mean = tl.sum(x) / T
        d = tl.where(t < T, x - mean, 0.0)
        rstd = 1.0 / tl.sqrt(tl.sum(d * d) / T + eps)
        tl.store(y_ptr + offs, d * rstd, mask=t < T)  # flaw: uncoalesced-access
        tl.store(mean_ptr + pid, mean)
        tl.store(rstd_ptr + pid, rstd)

    @triton.jit
    def norm_backward(x_ptr, dy_ptr, dx_ptr, mean_ptr, rstd_ptr, T, C, BLOCK_T: tl.constexpr, BLOCK_C: tl.constexpr):
        pid = tl.program_id(0)
        b, c = pid // C, pid % C
        t = tl.arange(0, BLOCK_T)
        offs = b.to(tl.int64) * T * C + t * C + c
        x = tl.load(x_ptr + offs, mask=t < T, other=0.0).to(tl.float32)  # flaw: uncoalesced-access
        dy = tl.load(dy_ptr + offs, mask=t < T, other=0.0).to(tl.float32)  # flaw: uncoalesced-access
        rstd = tl.load(rstd_ptr + pid)
        h = tl.where(t < T, (x - tl.load(mean_ptr + pid)) * rstd, 0.0)
        dx = rstd * (dy - tl.sum(dy) / T - h * (tl.sum(dy * h) / T))
        tl.store(dx_ptr + offs, dx, mask=t < T)  # flaw: uncoalesced-access


def launch(kernel, b, t, c, *args):
    kernel[(b * c,)](*args, BLOCK_T=triton.next_power_of_2(t), BLOCK_C=1, num_warps=4)  # flaw: uncoalesced-access


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
