import triton
import triton.language as tl

@triton.autotune(configs=[triton.Config({"B": 256})], key=["rows"])
@triton.jit
def column_sum(x_ptr, out_ptr, rows, stride, B: tl.constexpr):
    column = tl.program_id(0)
    total = tl.zeros((B,), tl.float32)
    for start in range(0, rows, B):
        r = start + tl.arange(0, B)
        total += tl.load(x_ptr + r * stride + column, mask=r < rows, other=0.0)  #> found
    tl.store(out_ptr + column, tl.sum(total))

column_sum[lambda meta: (x.shape[1],)](x, y, x.shape[0], x.stride(0))
#^ cost device_ms=5; kernel column_sum device_ms=5 grid=(4096,1,1) block=(128,1,1)
