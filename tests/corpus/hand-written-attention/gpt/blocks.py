import math
import torch
import torch.nn as nn
from torch.nn import functional as F

class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, block_size, dropout):
        super().__init__()
        self.c_attn = nn.Linear(n_embd, 3 * n_embd)
        self.attn_dropout = nn.Dropout(dropout)
        self.n_head, self.n_embd = n_head, n_embd
        self.register_buffer("bias", torch.tril(torch.ones(block_size, block_size)).view(1, 1, block_size, block_size))

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.c_attn(x).split(self.n_embd, dim=2)  #> cost device_ms=5
        k = k.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        q = q.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        v = v.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))  #> cost device_ms=7
        att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))  #> cost device_ms=4
        att = F.softmax(att, dim=-1)  #> cost device_ms=4
        att = self.attn_dropout(att)  #> cost device_ms=4
        y = att @ v  #> found; cost device_ms=4
        return y.transpose(1, 2).contiguous().view(B, T, C)  #> cost device_ms=1
