"""Train a small character model on made-up text."""
import os

import torch
import torch.nn.functional as F
from torch import nn

tiny = bool(os.environ.get("TINY"))
dev = "cuda" if torch.cuda.is_available() else "cpu"
V, D, H, L, T, B, N = (64, 32, 2, 2, 32, 2, 4) if tiny else (8192, 768, 12, 8, 512, 32, 400)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(D), nn.LayerNorm(D)
        self.qkv, self.o = nn.Linear(D, 3 * D), nn.Linear(D, D)
        self.u, self.d = nn.Linear(D, 4 * D), nn.Linear(4 * D, D)

    def forward(self, x):
        q, k, v = self.qkv(self.n1(x)).unflatten(-1, (3, H, D // H)).permute(2, 0, 3, 1, 4)
        x = x + self.o(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.d(F.gelu(self.u(self.n2(x))))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.place = nn.Embedding(V, D), nn.Embedding(T, D)
        self.layers = nn.Sequential(*[Layer() for _ in range(L)])
        self.norm, self.head = nn.LayerNorm(D), nn.Linear(D, V, bias=False)
        self.register_buffer("at", torch.arange(T))

    def forward(self, ids):
        return self.head(self.norm(self.layers(self.words(ids) + self.place(self.at))))


torch.manual_seed(0)
net = Model().to(dev)
opt = torch.optim.AdamW(net.parameters(), lr=3e-4, fused=True)
rate = torch.optim.lr_scheduler.CosineAnnealingLR(opt, N)
text = torch.randint(V, (64 * B, T + 1), device=dev)
for step in range(N):
    rows = text[step % 64 * B :][:B]
    with torch.autocast(dev, dtype=torch.bfloat16):
        loss = F.cross_entropy(net(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
    loss.backward()
    opt.step()
    rate.step()
    opt.zero_grad(set_to_none=True)
    if step % 40 == 39:
        print(step, f"{loss.item():.3f}")
print("end", f"{loss.item():.3f}")
