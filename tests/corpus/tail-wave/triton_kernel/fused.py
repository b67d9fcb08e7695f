import triton
import triton.language as tl

@triton.jit
def softmax_kernel(x, y, n, B: tl.constexpr):
    offs = tl.program_id(0) * n + tl.arange(0, B)
    e = tl.exp(tl.load(x + offs))
    tl.store(y + offs, e / tl.sum(e))

def softmax(x):
    softmax_kernel[(x.shape[0],)](x, y, x.shape[1], B=8192)
    #^ found; cost device_ms=4; kernel softmax_kernel device_ms=4 grid=(500,1,1) block=(512,1,1) registers=60 shared_bytes=1024
