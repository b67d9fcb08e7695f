import csv
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)


class Log:
    def __init__(self):
        self.rows = csv.writer(open("/dev/null", "w"))
        self.t = time.time()

    def write(self, step, loss, norm, lr):
        value = loss.item()  # flaw: sync-in-step
        size = norm.item()  # flaw: sync-in-step
        now = time.time()
        self.rows.writerow([step, f"{value:.6f}", f"{size:.4f}", f"{lr:.3e}", f"{now - self.t:.4f}"])
        self.t = now
        if step % 100 == 0:
            sys.stderr.write(f"step {step} loss {value:.3f}\n")


class Block(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h = h
        self.a, self.b = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.fc, self.out = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x):
        n, t, d = x.shape
        q, k, v = self.qkv(self.a(x)).view(n, t, 3, self.h, d // self.h).permute(2, 0, 3, 1, 4)
        x = x + self.proj(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(n, t, d))
        return x + self.out(F.gelu(self.fc(self.b(x))))


class GPT(nn.Module):
    def __init__(self, v=1024, d=512, h=8, n=10, t=256):
        super().__init__()
        self.e, self.p = nn.Embedding(v, d), nn.Parameter(torch.zeros(t, d))
        self.blocks = nn.Sequential(*[Block(d, h) for _ in range(n)])
        self.head = nn.Linear(d, v)

    def forward(self, x):
        return self.head(self.blocks(self.e(x) + self.p))


if __name__ == "__main__":
    model, log = GPT().to(device), Log()
    opt = torch.optim.AdamW(model.parameters(), 3e-4, fused=True)
    batch = 20
    text = torch.randint(0, 1024, (256, 257), device=device)
    for step in range(600):
        rows = text[torch.randint(0, 256, (batch,), device=device)]
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = F.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
        opt.zero_grad(set_to_none=True)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        log.write(step, loss.detach(), norm, opt.param_groups[0]["lr"])
        opt.step()
