from __future__ import annotations

import torch
import torch.nn as nn
import torch.nn.functional as F


class SelfAttention(nn.Module):
    def __init__(self, dim: int, heads: int, context: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.proj = nn.Linear(dim, dim, bias=False)
        self.register_buffer("allowed", torch.ones(context, context, dtype=torch.bool).tril(), persistent=False)  # flaw: none-yet(sdpa-fallback)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=self.allowed[:t, :t])  # flaw: none-yet(sdpa-fallback)
        return self.proj(y.transpose(1, 2).reshape(b, t, d))


class Layer(nn.Module):
    def __init__(self, dim: int, heads: int, context: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = SelfAttention(dim, heads, context)
        self.mlp = nn.Sequential(nn.Linear(dim, 3 * dim), nn.GELU(), nn.Linear(3 * dim, dim))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Bytes(nn.Module):
    def __init__(self, dim: int = 512, heads: int = 8, layers: int = 3, context: int = 4096) -> None:
        super().__init__()
        self.emb = nn.Embedding(256, dim)
        self.layers = nn.ModuleList(Layer(dim, heads, context) for _ in range(layers))
        self.head = nn.Linear(dim, 256)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.emb(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    batch, context = 6, 4096 if device == "cuda" else 256
    model = Bytes(context=context).to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    text = torch.randint(0, 256, (64, context + 1), device=device)
    for step in range(300):
        rows = text[torch.randint(0, 64, (batch,), device=device)]
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = F.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if step % 50 == 0:
            print(step, loss.item())


if __name__ == "__main__":
    main()
