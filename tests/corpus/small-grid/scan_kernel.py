import mamba_kernels

class Mixer:
    def forward(self, x):
        return mamba_kernels.scan(x)
        #^ found; cost device_ms=8; kernel "void selective_scan_fwd_kernel<128, 4, float>(Params)" count=24 device_ms=8 grid=(64,1,1) block=(128,1,1)
