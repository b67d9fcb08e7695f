"""Writes text token by token with a cache of keys and values."""
import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Layer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norm, self.qkv, self.o = nn.LayerNorm(dim), nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.ff = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x, past):
        b = x.shape[0]
        q, k, v = self.qkv(self.norm(x)).view(b, 1, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        k = torch.cat([past[0], k], dim=2)  # flaw: none-yet(kv-cache-cat)|cat-in-loop
        v = torch.cat([past[1], v], dim=2)  # flaw: none-yet(kv-cache-cat)|cat-in-loop
        a = F.scaled_dot_product_attention(q, k, v)
        x = x + self.o(a.transpose(1, 2).reshape(b, 1, -1))
        return x + self.ff(x), (k, v)


@torch.inference_mode()
def write(layers, emb, head, prompt, tokens):
    heads, dim = layers[0].heads, emb.embedding_dim
    past = [
        tuple(torch.randn(len(prompt), heads, 1024, dim // heads, device=device, dtype=torch.bfloat16) for _ in "kv")
        for _ in layers
    ]
    token = prompt
    for _ in range(tokens):
        x = emb(token)[:, None]
        for i, layer in enumerate(layers):
            x, past[i] = layer(x, past[i])
        token = head(x[:, 0]).argmax(-1)
    return token


dim = 1024
layers = nn.ModuleList(Layer(dim, 16) for _ in range(8)).to(device, torch.bfloat16).eval()
emb = nn.Embedding(8192, dim, device=device, dtype=torch.bfloat16)
head = nn.Linear(dim, 8192, device=device, dtype=torch.bfloat16)
print(write(layers, emb, head, torch.zeros(64, dtype=torch.long, device=device), 500)[:4])
