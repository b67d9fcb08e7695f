"""Support-ticket classifier with per-layer gradient statistics written to a CSV buffer."""
import csv
import io
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

SMALL = os.environ.get("SMALL", "0") == "1"


class GradWatch:
    """Collects the gradient norm of every weight after each backward pass."""

    def __init__(self, module, limit=1e4):
        self.named = [(n, p) for n, p in module.named_parameters() if p.requires_grad]
        self.limit = limit
        self.rows = []

    def record(self, step):
        norms = {}
        for name, p in self.named:
            norms[name] = p.grad.norm().item()  # flaw: sync-in-step
        self.rows.append((step, max(norms.values()), sum(v > self.limit for v in norms.values())))

    def dump(self):
        buf = io.StringIO()
        out = csv.writer(buf)
        out.writerow(["step", "largest", "over"])
        out.writerows(self.rows)
        return buf.getvalue()


class Attend(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.inp = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.inp(x).reshape(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        return self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, d))


class Residual(nn.Module):
    def __init__(self, dim, inner):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.inner = inner

    def forward(self, x):
        return x + self.inner(self.norm(x))


class Router(nn.Module):
    def __init__(self, vocab, queues, dim, depth, heads, length):
        super().__init__()
        self.tokens = nn.Embedding(vocab, dim)
        self.positions = nn.Parameter(torch.zeros(length, dim))
        parts = []
        for _ in range(depth):
            parts.append(Residual(dim, Attend(dim, heads)))
            parts.append(Residual(dim, nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))))
        self.trunk = nn.Sequential(*parts)
        self.classify = nn.Linear(dim, queues)

    def forward(self, ids):
        return self.classify(self.trunk(self.tokens(ids) + self.positions).mean(1))


def main():
    dim, depth, heads, length, batch, steps = (32, 2, 2, 32, 4, 30) if SMALL else (512, 12, 8, 256, 64, 80)
    vocab, queues = 1024, 32
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(1)
    model = Router(vocab, queues, dim, depth, heads, length).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5, fused=True)
    watch = GradWatch(model)
    tickets = torch.randint(vocab, (batch * 30, length), device=device)
    labels = tickets.sum(1) % queues
    for step in range(steps):
        rows = torch.randint(len(tickets), (batch,), device=device)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            loss = F.cross_entropy(model(tickets[rows]), labels[rows])
        loss.backward()
        watch.record(step)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    print(watch.dump().splitlines()[-1])


if __name__ == "__main__":
    main()
