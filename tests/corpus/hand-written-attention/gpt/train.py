import torch
from blocks import CausalSelfAttention

attention = CausalSelfAttention(768, 12, 1024, 0.1).cuda()
for x in batches:
    y = attention(x)  #> cost cpu_ms=0.4
    y.sum().backward()
