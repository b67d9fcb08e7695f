from torch.utils.cpp_extension import load_inline

CUDA = r"""
__global__ void selective_scan_fwd_kernel(Params params) { scan(params); }
"""
kernels = load_inline(name="scan", cpp_sources=CPP, cuda_sources=CUDA, functions=["scan"])

class Mixer:
    def forward(self, x):
        return kernels.scan(x)
        #^ found; cost device_ms=8; kernel "selective_scan_fwd_kernel(Params)" count=24 device_ms=8 grid=(64,1,1) block=(128,1,1)
