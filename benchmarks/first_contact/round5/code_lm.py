"""Decoder-only model over source code tokens."""
from __future__ import annotations

import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


class MultiHeadAttention(nn.Module):
    def __init__(self, embed_dim: int, num_heads: int, max_len: int):
        super().__init__()
        self.num_heads = num_heads
        self.in_proj = nn.Linear(embed_dim, embed_dim * 3)
        self.out_proj = nn.Linear(embed_dim, embed_dim)
        self.register_buffer("visible", torch.ones(max_len, max_len).tril().bool(), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        bsz, seq, dim = x.shape
        qkv = self.in_proj(x).reshape(bsz, seq, 3, self.num_heads, dim // self.num_heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        ctx = F.scaled_dot_product_attention(q, k, v, attn_mask=self.visible[:seq, :seq])  # flaw: slow-attention-kernel
        return self.out_proj(ctx.transpose(1, 2).reshape(bsz, seq, dim))


class TransformerLayer(nn.Module):
    def __init__(self, embed_dim: int, num_heads: int, max_len: int):
        super().__init__()
        self.attn_norm = nn.LayerNorm(embed_dim)
        self.attn = MultiHeadAttention(embed_dim, num_heads, max_len)
        self.ffn_norm = nn.LayerNorm(embed_dim)
        self.ffn = nn.Sequential(nn.Linear(embed_dim, 4 * embed_dim), nn.GELU(approximate="tanh"),
                                 nn.Linear(4 * embed_dim, embed_dim))

    def forward(self, x):
        x = x + self.attn(self.attn_norm(x))
        return x + self.ffn(self.ffn_norm(x))


class CodeLM(nn.Module):
    def __init__(self, vocab_size, embed_dim, num_heads, num_layers, max_len):
        super().__init__()
        self.wte = nn.Embedding(vocab_size, embed_dim)
        self.wpe = nn.Parameter(torch.randn(max_len, embed_dim) * 0.01)
        self.layers = nn.Sequential(*[TransformerLayer(embed_dim, num_heads, max_len) for _ in range(num_layers)])
        self.final_norm = nn.LayerNorm(embed_dim)
        self.lm_head = nn.Linear(embed_dim, vocab_size, bias=False)
        self.lm_head.weight = self.wte.weight
        nn.init.normal_(self.wte.weight, std=0.02)

    def forward(self, tokens):
        return self.lm_head(self.final_norm(self.layers(self.wte(tokens) + self.wpe)))


class Trainer:
    def __init__(self, small: bool):
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.seq = 24 if small else 2048
        self.bsz = 2 if small else 6
        self.vocab = 64 if small else 8192
        self.steps = 30 if small else 70
        width, heads, layers = (16, 2, 1) if small else (768, 12, 6)
        torch.manual_seed(0)
        self.model = CodeLM(self.vocab, width, heads, layers, self.seq).to(self.device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=6e-4, weight_decay=0.1, fused=True)
        self.tokens = torch.randint(self.vocab, (5, self.bsz, self.seq + 1), device=self.device)

    def train_step(self, block):
        with torch.autocast(self.device.type, dtype=torch.bfloat16):
            logits = self.model(block[:, :-1])
            loss = F.cross_entropy(logits.view(-1, self.vocab), block[:, 1:].reshape(-1))
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.detach()

    def fit(self):
        began = time.perf_counter()
        for n in range(self.steps):
            loss = self.train_step(self.tokens[n % 5])
            if n % 25 == 0:
                print(f"{n:>4} loss={loss.item():.3f} elapsed={time.perf_counter() - began:.1f}s")


if __name__ == "__main__":
    Trainer(small=os.environ.get("SMALL") == "1").fit()
