import torch
from torch.utils.cpp_extension import load_inline

source = """
template <typename T>
__global__ void __launch_bounds__(384) gated_product(const T* x, const T* w, T* y, int n) {
    extern __shared__ T tile[];
    y[blockIdx.x * blockDim.x + threadIdx.x] = x[threadIdx.x] * w[threadIdx.x];
}
"""
kernels = load_inline("kernels", "torch::Tensor product(torch::Tensor, torch::Tensor);", source, functions=["product"])


def project(x, w):
    return kernels.product(x, w)
    #^ found; cost device_ms=6
    #^ kernel "void gated_product<__nv_bfloat16>(__nv_bfloat16 const*, __nv_bfloat16 const*, int)" count=4 device_ms=6 grid=(20,7,1) block=(384,1,1) registers=168 shared_bytes=214000
