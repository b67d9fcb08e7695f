from torch import nn

class UNet(nn.Module):
    def forward(self, x):
        return self.down(x)  #> cost device_ms=25; op aten::convolution device_ms=18 shapes=[[4,32,64,64]] dtypes=float strides=[[131072,4096,64,1]]
        #^ kernel sm80_xmma_fprop_implicit_gemm_tf32f32 device_ms=12 tensor_cores=true; kernel nchwToNhwcKernel device_ms=6

def create(name):
    return UNet()
