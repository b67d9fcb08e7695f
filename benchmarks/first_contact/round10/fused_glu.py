"""A gated MLP for particle features whose gate is one Triton kernel, forward and backward."""
import torch
from torch import nn
from torch.nn import functional as F

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
DIM, HIDDEN, LAYERS, BATCH, STEPS = (1024, 4096, 6, 16384, 80) if CUDA else (16, 32, 2, 8, 3)

if triton is not None:

    @triton.jit
    def glu_forward(h_ptr, y_ptr, total, width, BLOCK: tl.constexpr):
        i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        inside = i < total
        left = i // width * width + i
        a = tl.load(h_ptr + left, mask=inside, other=0.0).to(tl.float32)
        b = tl.load(h_ptr + left + width, mask=inside, other=0.0).to(tl.float32)
        y = a * tl.sigmoid(a) * b
        tl.store(y_ptr + i, y.to(y_ptr.dtype.element_ty), mask=inside)

    @triton.jit
    def glu_backward(h_ptr, dy_ptr, dh_ptr, total, width, BLOCK: tl.constexpr):
        i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        inside = i < total
        left = i // width * width + i
        a = tl.load(h_ptr + left, mask=inside, other=0.0).to(tl.float32)
        b = tl.load(h_ptr + left + width, mask=inside, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + i, mask=inside, other=0.0).to(tl.float32)
        s = tl.sigmoid(a)
        da = dy * b * s * (1 + a * (1 - s))
        db = dy * a * s
        tl.store(dh_ptr + left, da.to(dh_ptr.dtype.element_ty), mask=inside)
        tl.store(dh_ptr + left + width, db.to(dh_ptr.dtype.element_ty), mask=inside)


class GLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, h):
        h = h.contiguous()
        ctx.save_for_backward(h)
        width = h.shape[-1] // 2
        y = h.new_empty(*h.shape[:-1], width)
        glu_forward[(triton.cdiv(y.numel(), 2048),)](h, y, y.numel(), width, BLOCK=2048, num_warps=8)
        return y

    @staticmethod
    def backward(ctx, dy):
        (h,) = ctx.saved_tensors
        dy = dy.contiguous()
        dh = torch.empty_like(h)
        grid = (triton.cdiv(dy.numel(), 2048),)
        glu_backward[grid](h, dy, dh, dy.numel(), dy.shape[-1], BLOCK=2048, num_warps=8)
        return dh


def glu(h):
    if h.is_cuda and triton is not None:
        return GLU.apply(h)
    a, b = h.chunk(2, -1)
    return F.silu(a) * b


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(DIM)
        self.up = nn.Linear(DIM, 2 * HIDDEN, bias=False)
        self.down = nn.Linear(HIDDEN, DIM, bias=False)

    def forward(self, x):
        return x + self.down(glu(self.up(self.norm(x))))


def main():
    torch.manual_seed(0)
    model = nn.Sequential(*[Block() for _ in range(LAYERS)], nn.LayerNorm(DIM), nn.Linear(DIM, 16)).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), 3e-4, fused=CUDA)
    events = torch.randn(3, BATCH, DIM, device=DEVICE, dtype=torch.bfloat16)
    kinds = torch.randint(0, 16, (3, BATCH), device=DEVICE)
    for step in range(STEPS):
        with torch.autocast(DEVICE.type, dtype=torch.bfloat16):
            loss = F.cross_entropy(model(events[step % 3]), kinds[step % 3])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step}: {loss.item():.4f}")


if __name__ == "__main__":
    main()
