#> steps step_ms=40
import torch
from torch import nn
import torch.nn.functional as F


class Window(nn.Module):
    def __init__(self, longest):
        super().__init__()
        ahead = torch.ones(longest, longest, dtype=torch.bool).tril_()
        self.register_buffer("ahead", ahead, persistent=False)

    def forward(self, q, k, v):
        t = q.size(-2)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=self.ahead[:t, :t])
        #^ found; cost device_ms=24; op aten::_scaled_dot_product_cudnn_attention device_ms=24
        #^ op aten::scaled_dot_product_attention shapes=[[8,8,512,64],[8,8,512,64],[8,8,512,64],[512,512]] dtypes=c10::Half,c10::Half,c10::Half,bool


for batch in loader:
    model(batch).mean().backward()  #> cost device_ms=1
