"""Gated MLP regressor whose SwiGLU product is a custom autograd function over Triton kernels."""
import torch
import torch.nn as nn
import torch.nn.functional as F

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

GPU = torch.cuda.is_available() and triton is not None
torch.backends.cuda.matmul.allow_tf32 = True

if triton is not None:

    @triton.jit
    def swiglu_fwd(AB, OUT, H, BLOCK: tl.constexpr):
        row = tl.program_id(0).to(tl.int64)
        cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
        keep = cols < H
        a = tl.load(AB + row * 2 * H + cols, mask=keep).to(tl.float32)
        b = tl.load(AB + row * 2 * H + H + cols, mask=keep).to(tl.float32)
        tl.store(OUT + row * H + cols, (a * tl.sigmoid(a) * b).to(OUT.dtype.element_ty), mask=keep)

    @triton.jit
    def swiglu_bwd(AB, DOUT, DAB, H, BLOCK: tl.constexpr):
        row = tl.program_id(0).to(tl.int64)
        cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
        keep = cols < H
        a = tl.load(AB + row * 2 * H + cols, mask=keep).to(tl.float32)
        b = tl.load(AB + row * 2 * H + H + cols, mask=keep).to(tl.float32)
        d = tl.load(DOUT + row * H + cols, mask=keep).to(tl.float32)
        s = tl.sigmoid(a)
        silu = a * s
        da = d * b * (s + silu * (1.0 - s))
        tl.store(DAB + row * 2 * H + cols, da.to(DAB.dtype.element_ty), mask=keep)
        tl.store(DAB + row * 2 * H + H + cols, (d * silu).to(DAB.dtype.element_ty), mask=keep)


class SwiGLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, ab):
        ctx.save_for_backward(ab)
        n, h = ab.shape[0], ab.shape[1] // 2
        if not ab.is_cuda:
            a, b = ab.chunk(2, dim=1)
            return F.silu(a) * b
        out = torch.empty(n, h, device=ab.device, dtype=ab.dtype)
        swiglu_fwd[(n, triton.cdiv(h, 1024))](ab, out, h, BLOCK=1024)
        return out

    @staticmethod
    def backward(ctx, dout):
        (ab,) = ctx.saved_tensors
        n, h = dout.shape
        if not ab.is_cuda:
            a, b = ab.chunk(2, dim=1)
            s = torch.sigmoid(a)
            return torch.cat([dout * b * s * (1 + a * (1 - s)), dout * a * s], dim=1)
        dab = torch.empty_like(ab)
        swiglu_bwd[(n, triton.cdiv(h, 1024))](ab, dout.contiguous(), dab, h, BLOCK=1024)
        return dab


class GatedLayer(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.norm = nn.LayerNorm(d)
        self.wide = nn.Linear(d, 2 * h, bias=False)
        self.back = nn.Linear(h, d, bias=False)

    def forward(self, x):
        return x + self.back(SwiGLU.apply(self.wide(self.norm(x))))


def build(n_in, d, h, depth, n_out):
    return nn.Sequential(nn.Linear(n_in, d), *(GatedLayer(d, h) for _ in range(depth)), nn.LayerNorm(d), nn.Linear(d, n_out))


def main():
    dev = torch.device("cuda" if GPU else "cpu")
    n_in, d, h, depth, n_out = (256, 1024, 4096, 6, 64) if GPU else (8, 16, 32, 2, 4)
    rows, batch, steps = (262144, 16384, 200) if GPU else (64, 16, 6)
    torch.manual_seed(0)
    table = torch.randn(rows, n_in, device=dev)
    target = torch.tanh(table @ torch.randn(n_in, n_out, device=dev) / n_in**0.5)
    model = build(n_in, d, h, depth, n_out).to(dev)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=GPU)
    for step in range(steps):
        pick = torch.randint(rows, (batch,), device=dev)
        with torch.autocast(dev.type, dtype=torch.bfloat16):
            pred = model(table[pick])
        loss = F.mse_loss(pred.float(), target[pick])
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if step % 40 == 0:
            print(f"step {step:4d} loss {loss.item():.5f}")
    print(f"final {loss.item():.6f}")


if __name__ == "__main__":
    main()
