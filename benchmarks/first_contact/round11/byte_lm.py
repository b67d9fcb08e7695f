"""Small decoder-only language model on a synthetic byte-pair stream."""
import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

CUDA = torch.cuda.is_available()


@dataclass
class GPTConfig:
    vocab: int = 8192 if CUDA else 64
    context: int = 1024 if CUDA else 16
    dim: int = 1024 if CUDA else 32
    layers: int = 8 if CUDA else 2
    heads: int = 16 if CUDA else 2
    batch: int = 16 if CUDA else 2
    steps: int = 120 if CUDA else 4
    peak_lr: float = 4e-4
    warmup: int = 20
    log_every: int = 40
    device: str = "cuda" if CUDA else "cpu"


class Block(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        d = cfg.dim
        self.heads = cfg.heads
        self.ln1, self.ln2 = nn.LayerNorm(d, bias=False), nn.LayerNorm(d, bias=False)
        self.qkv, self.proj = nn.Linear(d, 3 * d, bias=False), nn.Linear(d, d, bias=False)
        self.fc, self.out = nn.Linear(d, 4 * d, bias=False), nn.Linear(4 * d, d, bias=False)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, n, d))
        return x + self.out(F.gelu(self.fc(self.ln2(x)), approximate="tanh"))


class Output(nn.Module):
    """Final norm, scores and loss in one module, so that they are compiled together."""

    def __init__(self, cfg):
        super().__init__()
        self.norm = nn.LayerNorm(cfg.dim, bias=False)
        self.head = nn.Linear(cfg.dim, cfg.vocab, bias=False)

    def forward(self, x, targets):
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), targets.flatten())


class GPT(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.tokens = nn.Embedding(cfg.vocab, cfg.dim)
        self.positions = nn.Parameter(torch.zeros(cfg.context, cfg.dim))
        self.blocks = nn.ModuleList(Block(cfg) for _ in range(cfg.layers))
        self.output = Output(cfg)
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02)

    def compile_parts(self):
        for block in self.blocks:
            block.compile()
        self.output.compile()

    def forward(self, ids, targets):
        x = self.tokens(ids) + self.positions
        for block in self.blocks:
            x = block(x)
        return self.output(x, targets)


class Stream:
    """Markov-like stream held on the device; windows are drawn at random."""

    def __init__(self, cfg, size=1 << 21):
        self.cfg = cfg
        self.gen = torch.Generator(cfg.device).manual_seed(0)
        jumps = torch.randint(1, 5, (size,), device=cfg.device, generator=self.gen)
        self.data = jumps.cumsum(0) % cfg.vocab
        self.offsets = torch.arange(cfg.context + 1, device=cfg.device)

    def draw(self):
        last = len(self.data) - self.cfg.context - 1
        start = torch.randint(last, (self.cfg.batch, 1), device=self.cfg.device, generator=self.gen)
        window = self.data[start + self.offsets]
        return window[:, :-1], window[:, 1:].contiguous()


def learning_rate(step, cfg):
    if step < cfg.warmup:
        return cfg.peak_lr * (step + 1) / cfg.warmup
    phase = (step - cfg.warmup) / max(1, cfg.steps - cfg.warmup)
    return cfg.peak_lr * (0.1 + 0.45 * (1 + math.cos(math.pi * phase)))


def main():
    cfg = GPTConfig()
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    model = GPT(cfg).to(cfg.device)
    if CUDA:
        model.compile_parts()
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.peak_lr, betas=(0.9, 0.95), fused=True)
    stream = Stream(cfg, 1 << 21 if CUDA else 1 << 10)
    losses = []
    for step in range(cfg.steps):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, cfg)
        ids, targets = stream.draw()
        with torch.autocast(cfg.device, dtype=torch.bfloat16):
            loss = model(ids, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        if (step + 1) % cfg.log_every == 0:
            print(f"step {step + 1}: {torch.stack(losses[-cfg.log_every:]).mean().item():.4f}")
    print(f"loss {losses[0].item():.4f} -> {losses[-1].item():.4f}")


if __name__ == "__main__":
    main()
