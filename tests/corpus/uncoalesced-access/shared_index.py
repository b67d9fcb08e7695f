# One index serves a load and a store, and another one computed from it: the index is what to change.
import triton
import triton.language as tl

LEVELS = 64


@triton.jit
def smooth(x_ptr, out_ptr, columns, LEVELS: tl.constexpr, BLOCK: tl.constexpr):
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    start = column * LEVELS  #> found
    before = tl.load(x_ptr + start, mask=column < columns)
    for level in range(1, LEVELS):
        at = start + level
        now = tl.load(x_ptr + at, mask=column < columns)
        tl.store(out_ptr + at, 0.5 * (before + now), mask=column < columns)
        before = now


for step in range(100):
    smooth[(2048,)](x, out, 262144, LEVELS=LEVELS, BLOCK=128)
    #^ cost device_ms=40; kernel smooth count=1 device_ms=40 grid=(2048,1,1) block=(128,1,1)
