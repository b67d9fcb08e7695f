"""GPT on short stories: gradient accumulation, cosine schedule, weight decay groups."""
import math
import os
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.lr_scheduler import LambdaLR

SMALL = os.environ.get("SMALL") == "1"
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
VOCAB, DIM, HEADS, LAYERS, CTX = (64, 32, 2, 1, 32) if SMALL else (16384, 1024, 16, 8, 1024)
MICRO, ACCUM, STEPS = (2, 2, 30) if SMALL else (12, 2, 60)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1 = nn.LayerNorm(DIM, bias=False)
        self.c_attn = nn.Linear(DIM, 3 * DIM, bias=False)
        self.c_proj = nn.Linear(DIM, DIM, bias=False)
        self.ln_2 = nn.LayerNorm(DIM, bias=False)
        self.mlp = nn.Sequential(nn.Linear(DIM, 4 * DIM, bias=False), nn.GELU(), nn.Linear(4 * DIM, DIM, bias=False))

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.c_attn(self.ln_1(x)).view(b, t, 3, HEADS, c // HEADS).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.c_proj(y.transpose(1, 2).reshape(b, t, c))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte = nn.Embedding(VOCAB, DIM)
        self.wpe = nn.Embedding(CTX, DIM)
        self.register_buffer("positions", torch.arange(CTX), persistent=False)
        self.blocks = nn.Sequential(*[Block() for _ in range(LAYERS)])
        self.ln_f = nn.LayerNorm(DIM, bias=False)
        self.head = nn.Linear(DIM, VOCAB, bias=False)
        self.head.weight = self.wte.weight
        self.apply(lambda m: nn.init.normal_(m.weight, std=0.02) if isinstance(m, (nn.Linear, nn.Embedding)) else None)

    def forward(self, idx, targets):
        x = self.wte(idx) + self.wpe(self.positions[: idx.size(1)])
        logits = self.head(self.ln_f(self.blocks(x)))
        return F.cross_entropy(logits.view(-1, VOCAB), targets.reshape(-1))


def optimizer_for(model):
    decay = [p for p in model.parameters() if p.dim() >= 2]
    rest = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=6e-4, betas=(0.9, 0.95), fused=True)


def main():
    torch.manual_seed(1337)
    torch.set_float32_matmul_precision("high")
    model = GPT().to(DEVICE)
    opt = optimizer_for(model)
    warm = 10
    sched = LambdaLR(opt, lambda s: (s + 1) / warm if s < warm else 0.5 * (1 + math.cos(math.pi * s / STEPS)))
    stories = torch.randint(VOCAB, (8, MICRO, CTX + 1), device=DEVICE)
    meter = torch.zeros((), device=DEVICE)
    for step in range(STEPS):
        for micro in range(ACCUM):
            rows = stories[(step * ACCUM + micro) % 8]
            with torch.autocast(DEVICE, dtype=torch.bfloat16):
                loss = model(rows[:, :-1], rows[:, 1:]) / ACCUM
            loss.backward()
            meter += loss.detach()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        opt.zero_grad(set_to_none=True)
        sched.step()
        if (step + 1) % 20 == 0:
            print(f"step {step + 1} loss {meter.item() / 20:.3f}")
            meter.zero_()


if __name__ == "__main__":
    main()
