import torch
import triton
from triton import language as tl, next_power_of_2

@triton.jit
def _turn(source, target, M, N, WIDTH: tl.constexpr):
    """One row of the source becomes one column of the target."""
    m = tl.program_id(axis=0)
    n = tl.arange(0, WIDTH)
    inside = n < N
    row = tl.load(source + m * N + n, mask=inside, other=0.0)
    tl.store(target + n * M + m, row, mask=inside)  #> found

def transposed(x: torch.Tensor) -> torch.Tensor:
    m, n = x.shape
    out = x.new_empty(n, m)
    grid = (m,)
    _turn[grid](x, out, m, n, WIDTH=next_power_of_2(n))
    #^ cost device_ms=3; kernel _turn device_ms=3 grid=(8192,1,1) block=(128,1,1)
    return out
