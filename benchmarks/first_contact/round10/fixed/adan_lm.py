"""Try the Adan optimizer on a deep and narrow language model."""

import torch
import torch.nn as nn
import torch.nn.functional as F

GPU = torch.cuda.is_available()
DEVICE = torch.device("cuda" if GPU else "cpu")


class Adan(torch.optim.Optimizer):
    """Adaptive Nesterov momentum (Xie et al., 2022)."""

    def __init__(self, params, lr=1e-3, betas=(0.02, 0.08, 0.01), eps=1e-8, weight_decay=0.02):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            b1, b2, b3 = group["betas"]
            lr, eps, decay = group["lr"], group["eps"], group["weight_decay"]
            params = [p for p in group["params"] if p.grad is not None]
            grads = [p.grad for p in params]
            for p in params:
                if not self.state[p]:
                    state = self.state[p]
                    state["m"] = torch.zeros_like(p)
                    state["v"] = torch.zeros_like(p)
                    state["n"] = torch.zeros_like(p)
                    state["previous"] = p.grad.clone()
            m, v, n, previous = (
                [self.state[p][name] for p in params] for name in ("m", "v", "n", "previous")
            )
            diff = torch._foreach_sub(grads, previous)
            torch._foreach_lerp_(m, grads, b1)
            torch._foreach_lerp_(v, diff, b2)
            nesterov = torch._foreach_add(grads, diff, alpha=1 - b2)
            torch._foreach_mul_(n, 1 - b3)
            torch._foreach_addcmul_(n, nesterov, nesterov, value=b3)
            update = torch._foreach_add(m, v, alpha=1 - b2)
            scale = torch._foreach_sqrt(n)
            torch._foreach_add_(scale, eps)
            torch._foreach_div_(update, scale)
            torch._foreach_add_(params, update, alpha=-lr)
            torch._foreach_div_(params, 1 + lr * decay)
            torch._foreach_copy_(previous, grads)


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.up, self.down = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, d))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class DeepLM(nn.Module):
    def __init__(self, vocab, length, dim, heads, depth):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.position = nn.Parameter(torch.randn(length, dim) * 0.02)
        self.blocks = nn.Sequential(*[Block(dim, heads) for _ in range(depth)])
        self.head = nn.Linear(dim, vocab)

    def forward(self, ids):
        return self.head(self.blocks(self.embed(ids) + self.position))


def main():
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    vocab, length, dim, heads, depth = (8192, 256, 512, 8, 28) if GPU else (64, 16, 32, 2, 2)
    batch, steps = (40, 150) if GPU else (4, 6)
    model = DeepLM(vocab, length, dim, heads, depth).to(DEVICE)
    optimizer = Adan(model.parameters(), lr=5e-4)
    text = torch.randint(vocab, (batch * 20, length + 1), device=DEVICE)
    for step in range(steps):
        ids = text[torch.randint(len(text), (batch,), device=DEVICE)]
        with torch.autocast(DEVICE.type, dtype=torch.bfloat16):
            logits = model(ids[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if step % 30 == 0 or step == steps - 1:
            print(f"{step:4d}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
