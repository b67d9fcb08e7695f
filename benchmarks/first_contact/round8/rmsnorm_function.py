"""Audio-token language model with an RMSNorm written as autograd.Function over Triton kernels."""
import torch
import torch.nn as nn
import torch.nn.functional as F

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

CUDA = torch.cuda.is_available() and triton is not None
torch.backends.cuda.matmul.allow_tf32 = True

if triton is not None:

    @triton.jit
    def _fwd(X, W, Y, RSTD, D, eps, BLOCK: tl.constexpr):
        row = tl.program_id(0).to(tl.int64)
        cols = tl.arange(0, BLOCK)
        keep = cols < D
        x = tl.load(X + row * D + cols, mask=keep, other=0.0).to(tl.float32)
        rstd = 1.0 / tl.sqrt(tl.sum(x * x, 0) / D + eps)
        w = tl.load(W + cols, mask=keep, other=0.0)
        tl.store(Y + row * D + cols, (x * rstd * w).to(Y.dtype.element_ty), mask=keep)
        tl.store(RSTD + row, rstd)

    @triton.jit
    def _bwd_dx(X, W, DY, RSTD, DX, D, BLOCK: tl.constexpr):
        row = tl.program_id(0).to(tl.int64)
        cols = tl.arange(0, BLOCK)
        keep = cols < D
        x = tl.load(X + row * D + cols, mask=keep, other=0.0).to(tl.float32)
        dy = tl.load(DY + row * D + cols, mask=keep, other=0.0).to(tl.float32)
        w = tl.load(W + cols, mask=keep, other=0.0)
        rstd = tl.load(RSTD + row)
        g = dy * w
        dot = tl.sum(g * x, 0) / D
        dx = rstd * (g - x * rstd * rstd * dot)
        tl.store(DX + row * D + cols, dx.to(DX.dtype.element_ty), mask=keep)

    @triton.jit
    def _bwd_dw(X, DY, RSTD, DW, M, D, BLOCK_M: tl.constexpr, BLOCK_D: tl.constexpr):
        cols = tl.program_id(0) * BLOCK_D + tl.arange(0, BLOCK_D)
        keep = cols < D
        acc = tl.zeros((BLOCK_M, BLOCK_D), dtype=tl.float32)
        for start in range(0, M, BLOCK_M):  # flaw: small-grid
            rows = start + tl.arange(0, BLOCK_M)
            at = rows[:, None].to(tl.int64) * D + cols[None, :]
            mask = (rows < M)[:, None] & keep[None, :]
            x = tl.load(X + at, mask=mask, other=0.0).to(tl.float32)
            dy = tl.load(DY + at, mask=mask, other=0.0).to(tl.float32)
            rstd = tl.load(RSTD + rows, mask=rows < M, other=0.0)
            acc += dy * x * rstd[:, None]
        tl.store(DW + cols, tl.sum(acc, 0), mask=keep)  # flaw: small-grid


class RMSNormFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, eps):
        d = x.shape[-1]
        flat = x.contiguous().view(-1, d)
        if flat.is_cuda:
            y = torch.empty_like(flat, dtype=torch.bfloat16)
            rstd = torch.empty(len(flat), device=x.device, dtype=torch.float32)
            _fwd[(len(flat),)](flat, w, y, rstd, d, eps, BLOCK=triton.next_power_of_2(d), num_warps=4)
        else:
            rstd = torch.rsqrt(flat.square().mean(1) + eps)
            y = flat * rstd[:, None] * w
        ctx.save_for_backward(flat, w, rstd)
        return y.view(x.shape)

    @staticmethod
    def backward(ctx, dy):
        x, w, rstd = ctx.saved_tensors
        m, d = x.shape
        dy = dy.contiguous()
        if x.is_cuda:
            dx = torch.empty_like(x)
            _bwd_dx[(m,)](x, w, dy, rstd, dx, d, BLOCK=triton.next_power_of_2(d), num_warps=4)
            dw = torch.empty_like(w)  # flaw: small-grid
            _bwd_dw[(triton.cdiv(d, 128),)](x, dy, rstd, dw, m, d, BLOCK_M=32, BLOCK_D=128)  # flaw: small-grid
        else:
            g = dy.view(m, d) * w
            dx = rstd[:, None] * (g - x * rstd[:, None] ** 2 * (g * x).mean(1, keepdim=True))
            dw = (dy.view(m, d) * x * rstd[:, None]).sum(0)
        return dx.view(dy.shape), dw, None


class RMSNorm(nn.Module):
    def __init__(self, d, eps=1e-6):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(d)), eps

    def forward(self, x):
        return RMSNormFunction.apply(x, self.weight, self.eps)


class Block(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads, self.n1, self.n2 = heads, RMSNorm(d), RMSNorm(d)
        self.qkv, self.o = nn.Linear(d, 3 * d, bias=False), nn.Linear(d, d, bias=False)
        self.up, self.down = nn.Linear(d, 4 * d, bias=False), nn.Linear(4 * d, d, bias=False)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(a.transpose(1, 2).reshape(b, t, d))
        return x + self.down(F.gelu(self.up(self.n2(x))))


def main():
    dev = torch.device("cuda" if CUDA else "cpu")
    d, heads, depth, vocab = (1024, 16, 3, 2048) if CUDA else (32, 2, 1, 64)
    batch, length, steps = (32, 1024, 120) if CUDA else (2, 16, 4)
    torch.manual_seed(0)
    emb = nn.Embedding(vocab, d)
    model = nn.Sequential(emb, *(Block(d, heads) for _ in range(depth)), RMSNorm(d), nn.Linear(d, vocab, bias=False))
    model.to(dev)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=CUDA)
    tokens = torch.randint(vocab, (256, length + 1), device=dev)
    for step in range(steps):
        seq = tokens[torch.randint(len(tokens), (batch,), device=dev)]
        with torch.autocast(dev.type, dtype=torch.bfloat16, enabled=CUDA):
            loss = F.cross_entropy(model(seq[:, :-1]).flatten(0, 1), seq[:, 1:].flatten())
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if step % 20 == 0:
            print(step, round(loss.item(), 4))


if __name__ == "__main__":
    main()
