"""Masked-token pre-training of a deep, narrow encoder with the Lion optimizer."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.optim import Optimizer

USE_CUDA = torch.cuda.is_available()
DEV = "cuda" if USE_CUDA else "cpu"


class Lion(Optimizer):
    """Evolved sign momentum (Chen et al., 2023)."""

    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            lr, wd = group["lr"], group["weight_decay"]
            beta1, beta2 = group["betas"]
            params = [p for p in group["params"] if p.grad is not None]
            grads = [p.grad for p in params]
            for p in params:
                if not self.state[p]:
                    self.state[p]["exp_avg"] = torch.zeros_like(p)
            exp_avgs = [self.state[p]["exp_avg"] for p in params]
            torch._foreach_mul_(params, 1 - lr * wd)
            updates = torch._foreach_lerp(exp_avgs, grads, 1 - beta1)
            torch._foreach_sign_(updates)
            torch._foreach_add_(params, updates, alpha=-lr)
            torch._foreach_lerp_(exp_avgs, grads, 1 - beta2)


class PreNormLayer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.fc1, self.fc2 = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, d)
        x = x + self.proj(y)
        return x + self.fc2(F.gelu(self.fc1(self.ln2(x))))


class MaskedLM(nn.Module):
    def __init__(self, vocab, dim, heads, depth, length):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.where = nn.Parameter(torch.randn(length, dim) * 0.02)
        self.layers = nn.Sequential(*[PreNormLayer(dim, heads) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)
        self.decoder = nn.Linear(dim, vocab)

    def forward(self, ids, positions):
        """Logits at the masked positions only."""
        x = self.norm(self.layers(self.embed(ids) + self.where))
        picked = x.gather(1, positions[..., None].expand(-1, -1, x.size(-1)))
        return self.decoder(picked)


def masked_batch(pool, batch, hidden_per_row, mask_id):
    rows = pool[torch.randint(0, len(pool), (batch,), device=DEV)]
    positions = torch.rand(rows.shape, device=DEV).topk(hidden_per_row, dim=1).indices
    labels = rows.gather(1, positions)
    return rows.scatter(1, positions, mask_id), positions, labels


def run():
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    vocab, dim, heads, depth, length = (8192, 512, 8, 20, 512) if USE_CUDA else (128, 32, 2, 3, 32)
    batch, steps = (16, 350) if USE_CUDA else (2, 6)
    model = MaskedLM(vocab, dim, heads, depth, length).to(DEV)
    decay = [p for p in model.parameters() if p.dim() > 1]
    plain = [p for p in model.parameters() if p.dim() <= 1]
    optimizer = Lion(
        [{"params": decay, "weight_decay": 0.1}, {"params": plain, "weight_decay": 0.0}], lr=1e-4
    )
    pool = torch.randint(1, vocab, (4096 if USE_CUDA else 16, length), device=DEV)
    for step in range(steps):
        ids, positions, labels = masked_batch(pool, batch, length * 15 // 100 // 4 * 4, 0)
        with torch.autocast(DEV, dtype=torch.bfloat16, enabled=USE_CUDA):
            logits = model(ids, positions)
            loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if step % 100 == 0 or step == steps - 1:
            print(f"[{step}] masked loss {loss.item():.4f}")


if __name__ == "__main__":
    run()
