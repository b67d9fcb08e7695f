"""Language model on byte-pair tokens, with gradient clipping and a cosine schedule."""

import math
from typing import NamedTuple

import torch
import torch.nn as nn
import torch.nn.functional as F

GPU = torch.cuda.is_available()
TOKENS = 50257 if GPU else 257  # byte-pair merges, bytes and the end of text


class Hparams(NamedTuple):
    n_vocab: int = TOKENS  # flaw: misaligned-matmul
    n_ctx: int = 512 if GPU else 16
    n_embd: int = 768 if GPU else 32
    n_head: int = 12 if GPU else 2
    n_layer: int = 6 if GPU else 2
    batch: int = 16 if GPU else 2
    steps: int = 220 if GPU else 6


class Attention(nn.Module):
    def __init__(self, hp):
        super().__init__()
        self.n_head = hp.n_head
        self.qkv = nn.Linear(hp.n_embd, 3 * hp.n_embd)
        self.proj = nn.Linear(hp.n_embd, hp.n_embd)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.n_head, d // self.n_head).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(y.transpose(1, 2).reshape(b, t, d))


class Block(nn.Module):
    def __init__(self, hp):
        super().__init__()
        self.ln_1 = nn.LayerNorm(hp.n_embd)
        self.attn = Attention(hp)
        self.ln_2 = nn.LayerNorm(hp.n_embd)
        self.c_fc = nn.Linear(hp.n_embd, 4 * hp.n_embd)
        self.c_proj = nn.Linear(4 * hp.n_embd, hp.n_embd)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.c_proj(F.gelu(self.c_fc(self.ln_2(x)), approximate="tanh"))


class LanguageModel(nn.Module):
    def __init__(self, hp):
        super().__init__()
        self.wte = nn.Embedding(hp.n_vocab, hp.n_embd)
        self.wpe = nn.Embedding(hp.n_ctx, hp.n_embd)
        self.blocks = nn.ModuleList([Block(hp) for _ in range(hp.n_layer)])
        self.ln_f = nn.LayerNorm(hp.n_embd)
        self.apply(self._init)

    @staticmethod
    def _init(module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.02)

    def forward(self, ids):
        x = self.wte(ids) + self.wpe.weight[: ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        return F.linear(self.ln_f(x), self.wte.weight)


def schedule(step, total, warmup=20):
    if step < warmup:
        return (step + 1) / warmup
    return 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(1, total - warmup)))


def main():
    torch.manual_seed(42)
    torch.set_float32_matmul_precision("high")
    hp = Hparams()
    device = torch.device("cuda" if GPU else "cpu")
    model = LanguageModel(hp).to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=6e-4, betas=(0.9, 0.95), fused=True)
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: schedule(s, hp.steps))
    corpus = torch.randint(TOKENS, (hp.batch * 20, hp.n_ctx + 1), device=device)
    for step in range(hp.steps):
        rows = torch.randint(len(corpus), (hp.batch,), device=device)
        batch = corpus[rows]
        with torch.autocast(device.type, dtype=torch.bfloat16):
            logits = model(batch[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        opt.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        sched.step()
        if step % 40 == 0 or step == hp.steps - 1:
            print(f"{step} {loss.item():.4f}")


if __name__ == "__main__":
    main()
