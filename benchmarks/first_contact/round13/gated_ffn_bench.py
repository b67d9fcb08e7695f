"""Batch inference through gated feed-forward experts with our own activation kernel."""
import os
import sys

import torch
import torch.nn.functional as F

TINY = os.environ.get("TINY") == "1"
GPU = torch.cuda.is_available()
if GPU:
    import triton
    import triton.language as tl

    @triton.jit
    def gate_kernel(up, gate, bias, out, rows, cols, BLOCK: tl.constexpr):
        """out = silu(gate + bias) * up on [rows, cols] tensors."""
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        inside = i < rows * cols
        c = i // rows  # flaw: uncoalesced-access
        r = i % rows  # flaw: uncoalesced-access
        at = r * cols + c  # flaw: uncoalesced-access
        g = tl.load(gate + at, mask=inside, other=0.0).to(tl.float32)  # flaw: uncoalesced-access
        g += tl.load(bias + c, mask=inside, other=0.0).to(tl.float32)
        u = tl.load(up + at, mask=inside, other=0.0).to(tl.float32)  # flaw: uncoalesced-access
        y = g * tl.sigmoid(g) * u
        tl.store(out + at, y.to(out.dtype.element_ty), mask=inside)  # flaw: uncoalesced-access


def gated(up, gate, bias):
    if not GPU:
        return F.silu(gate + bias) * up
    rows, cols = up.shape
    out = torch.empty_like(up)
    launch = (triton.cdiv(rows * cols, 1024),)
    gate_kernel[launch](up, gate, bias, out, rows, cols, BLOCK=1024, num_warps=4)
    return out


def make_expert(width, inner, gen, opts):
    scale = width ** -0.5
    return {
        "up": torch.randn(width, inner, generator=gen, **opts) * scale,
        "gate": torch.randn(width, inner, generator=gen, **opts) * scale,
        "bias": torch.randn(inner, generator=gen, **opts) * 0.1,
        "down": torch.randn(inner, width, generator=gen, **opts) * inner ** -0.5,
    }


def apply_expert(x, e):
    h = F.layer_norm(x, x.shape[-1:])
    return torch.addmm(x, gated(h @ e["up"], h @ e["gate"], e["bias"]), e["down"])


def documents(count, tokens, width, gen, opts):
    base = torch.randn(tokens, width, generator=gen, **opts)
    n = 0
    while n < count:
        yield base.roll(n * 64, 0)
        n += 1


@torch.no_grad()
def main(argv):
    device = "cuda" if GPU else "cpu"
    opts = dict(device=device, dtype=torch.bfloat16 if GPU else torch.float32)
    width, inner, layers, tokens, count = (64, 128, 2, 96, 3) if TINY else (1024, 4096, 6, 32768, 400)
    if argv:
        count = int(argv[0])
    gen = torch.Generator(device).manual_seed(0)
    experts = [make_expert(width, inner, gen, opts) for _ in range(layers)]
    norms = torch.zeros(count, device=device)
    for n, x in enumerate(documents(count, tokens, width, gen, opts)):
        for e in experts:
            x = apply_expert(x, e)
        norms[n] = torch.linalg.vector_norm(x, dtype=torch.float32)
    print(f"mean norm {norms.mean().item():.3f}")


if __name__ == "__main__":
    main(sys.argv[1:])
