"""Masked residue modelling on protein chains."""
import os
import types

import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint_sequential

cfg = types.SimpleNamespace(alphabet=32, length=1024, dim=1024, heads=16, depth=12, segments=6, chains=8192, batch=24,
                            steps=190, masked=0.15, lr=2e-4)
if os.environ.get("TINY") == "1":
    cfg.__dict__.update(length=32, dim=32, heads=2, depth=4, segments=2, chains=64, batch=4, steps=5)

device = "cuda" if torch.cuda.is_available() else "cpu"
MASK = 31


class Attention(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h, self.inp, self.out = h, nn.Linear(d, 3 * d), nn.Linear(d, d)

    def forward(self, x):
        q, k, v = self.inp(x).unflatten(-1, (3, self.h, -1)).permute(2, 0, 3, 1, 4)
        return self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.attn = Attention(d, h)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)

    def forward(self, x):
        x = x + self.attn(self.n1(x))
        return x + self.mlp(self.n2(x))


class Stack(nn.Sequential):
    def forward(self, x):
        return checkpoint_sequential(self, cfg.segments, x, use_reentrant=False)  # flaw: needless-checkpointing


class ProteinLM(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.residue = nn.Embedding(c.alphabet, c.dim)
        self.position = nn.Parameter(torch.randn(c.length, c.dim) * 0.02)
        self.stack = Stack(*[Block(c.dim, c.heads) for _ in range(c.depth)])
        self.norm = nn.LayerNorm(c.dim)
        self.to_residue = nn.Linear(c.dim, c.alphabet)

    def forward(self, ids, pos):
        x = self.stack(self.residue(ids) + self.position)
        x = x.gather(1, pos.unsqueeze(-1).expand(-1, -1, x.shape[-1]))
        return self.to_residue(self.norm(x))


def corrupt(ids, c):
    n = int(c.length * c.masked) // 8 * 8 or 8
    pos = torch.rand(ids.shape, device=ids.device).topk(n, dim=1).indices
    return ids.scatter(1, pos, MASK), pos, ids.gather(1, pos)


torch.set_float32_matmul_precision("high")
torch.manual_seed(13)
start = torch.randint(20, (cfg.chains, 1), device=device)
chains = (start + 3 * torch.arange(cfg.length, device=device)) % 20
model = ProteinLM(cfg).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr, fused=device == "cuda")
losses = []
for it in range(cfg.steps):
    ids = chains[torch.randint(cfg.chains, (cfg.batch,), device=device)]
    corrupted, pos, target = corrupt(ids, cfg)
    with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
        loss = F.cross_entropy(model(corrupted, pos).flatten(0, 1), target.flatten())
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    losses.append(loss.detach())
losses = torch.stack(losses).tolist()
print(f"loss {losses[0]:.4f} -> {losses[-1]:.4f}")
