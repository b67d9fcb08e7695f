import torch
from torch import Tensor

class Rotary(torch.nn.Module):
    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:  #> found
        left, right = x.chunk(2, dim=-1)
        turned = torch.cat((-right, left), -1)  #> cost device_ms=2
        #^ kernel CatArrayBatchedCopy_aligned16 count=12 device_ms=1.2; kernel vectorized_elementwise_kernel count=12 device_ms=0.8
        return x * cos + turned * sin  #> cost device_ms=3; kernel vectorized_elementwise_kernel count=36 device_ms=3
