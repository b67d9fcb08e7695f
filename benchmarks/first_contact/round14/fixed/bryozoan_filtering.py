"""Feeding currents of a bryozoan colony: each zooid's channel is gated by its own tentacles (a Triton kernel)."""
import os
import torch

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

TINY = os.environ.get("TINY") == "1"
DEV = "cuda" if torch.cuda.is_available() else "cpu"

if triton is not None:
    @triton.jit
    def sieve_kernel(water, food, gate, out, moments, zooids, BLOCK: tl.constexpr):
        moment = tl.program_id(0)
        zooid = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
        inside = zooid < zooids
        where = moment.to(tl.int64) * zooids + zooid
        w = tl.load(water + where, mask=inside, other=0.0)
        f = tl.load(food + where, mask=inside, other=0.0)
        g = tl.load(gate + zooid, mask=inside, other=0.0)
        tl.store(out + where, w + g * f / (1.0 + tl.abs(w)), mask=inside)


def sieve(water, food, gate):
    if not water.is_cuda:
        return water + gate * food / (1 + water.abs())
    out = torch.empty_like(water)
    moments, zooids = water.shape
    grid = (moments, triton.cdiv(zooids, 512))
    sieve_kernel[grid](water, food, gate, out, moments, zooids, BLOCK=512)
    return out


@torch.inference_mode()
def colony(moments, zooids, rounds):
    torch.set_float32_matmul_precision("high")
    torch.manual_seed(16)
    neighbours = torch.randn(zooids, zooids, device=DEV) / zooids ** 0.5
    gate = torch.rand(zooids, device=DEV)
    water = torch.randn(moments, zooids, device=DEV)
    eaten = torch.zeros((), device=DEV)
    for _ in range(rounds):
        food = water @ neighbours
        water = sieve(water, food, gate)
        eaten += water[:64].mean()
        water = water.clamp_(-3, 3)
    print(f"eaten {eaten.item() / rounds:.4f}")


if __name__ == "__main__":
    colony(*((64, 32, 4) if TINY else (262144, 1024, 1000)))
