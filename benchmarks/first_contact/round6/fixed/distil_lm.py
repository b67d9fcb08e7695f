import os
from types import SimpleNamespace as NS

import torch
import torch.nn as nn
import torch.nn.functional as F

SMALL = os.environ.get("SMALL", "") != ""

spec = NS(
    tokens=NS(
        vocab=512 if SMALL else 32064,
        context=32 if SMALL else 512,
    ),
    student=NS(dim=32 if SMALL else 512, depth=1 if SMALL else 4),
    teacher=NS(dim=64 if SMALL else 1024, depth=1 if SMALL else 6),
    batch=2 if SMALL else 16,
    steps=30 if SMALL else 80,
    used=500 if SMALL else 32000,
)
device = "cuda" if torch.cuda.is_available() else "cpu"


class Attn(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.h = d // 32 if SMALL else d // 64
        self.qkv = nn.Linear(d, 3 * d)
        self.out = nn.Linear(d, d)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.h, d // self.h).permute(2, 0, 3, 1, 4)
        return self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, d))


class Tower(nn.Module):
    def __init__(self, tok, arch):
        super().__init__()
        d = arch.dim
        self.wte = nn.Embedding(tok.vocab, d)
        self.wpe = nn.Embedding(tok.context, d)
        self.attn = nn.ModuleList(Attn(d) for _ in range(arch.depth))
        self.mlp = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(d), nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))
            for _ in range(arch.depth)
        )
        self.pre = nn.ModuleList(nn.LayerNorm(d) for _ in range(arch.depth))
        self.last = nn.LayerNorm(d)
        self.lm = nn.Linear(d, tok.vocab, bias=False)
        self.register_buffer("where", torch.arange(tok.context), persistent=False)

    def forward(self, ids):
        x = self.wte(ids) + self.wpe(self.where)
        for pre, attn, mlp in zip(self.pre, self.attn, self.mlp):
            x = x + attn(pre(x))
            x = x + mlp(x)
        return self.lm(self.last(x))


def soft_targets(student_logits, teacher_logits):
    with torch.no_grad():
        target = F.softmax(teacher_logits, -1)
    return F.cross_entropy(student_logits.flatten(0, 1), target.flatten(0, 1))


torch.manual_seed(0)
teacher = Tower(spec.tokens, spec.teacher).to(device, torch.bfloat16).eval().requires_grad_(False)
student = Tower(spec.tokens, spec.student).to(device)
opt = torch.optim.AdamW(student.parameters(), lr=3e-4, fused=True)
for step in range(spec.steps):
    ids = torch.randint(spec.used, (spec.batch, spec.tokens.context), device=device)
    with torch.no_grad():
        reference = teacher(ids)
    with torch.autocast(device, torch.bfloat16):
        loss = soft_targets(student(ids), reference)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 20 == 0:
        print(step, f"{loss.item():.4f}")
