"""Next-basket model with one attention head per layer."""
import os
import torch
import torch.nn as nn
import torch.nn.functional as F

SMALL = "SMALL" in os.environ
ITEMS, DIM, LAYERS, LENGTH, BATCH, STEPS = (200, 32, 2, 16, 2, 30) if SMALL else (8192, 128, 4, 1024, 32, 80)


class OneHead(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(DIM, DIM), nn.Linear(DIM, DIM), nn.Linear(DIM, DIM)

    def forward(self, x):
        return F.scaled_dot_product_attention(self.q(x), self.k(x), self.v(x), is_causal=True)  # flaw: slow-attention-kernel


class Baskets(nn.Module):
    def __init__(self):
        super().__init__()
        self.items = nn.Embedding(ITEMS, DIM)
        self.when = nn.Embedding(LENGTH, DIM)
        self.drop = nn.Dropout(0.1)
        self.pre = nn.ModuleList([nn.LayerNorm(DIM) for _ in range(LAYERS)])
        self.att = nn.ModuleList([OneHead() for _ in range(LAYERS)])
        self.mid = nn.ModuleList([nn.LayerNorm(DIM) for _ in range(LAYERS)])
        self.ffn = nn.ModuleList([nn.Sequential(nn.Linear(DIM, 4 * DIM), nn.ReLU(), nn.Linear(4 * DIM, DIM)) for _ in range(LAYERS)])
        self.out = nn.Linear(DIM, ITEMS)

    def forward(self, seq):
        x = self.drop(self.items(seq) + self.when.weight)
        for pre, att, mid, ffn in zip(self.pre, self.att, self.mid, self.ffn):
            x = x + att(pre(x))
            x = x + ffn(mid(x))
        return self.out(x)


device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(2)
model = Baskets().to(device)
optim = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
histories = torch.randint(ITEMS, (BATCH * 10, LENGTH + 1), device=device)

for step in range(STEPS):
    rows = histories[step % 10 * BATCH :][:BATCH]
    with torch.autocast(device, dtype=torch.bfloat16):
        scores = model(rows[:, :-1])
        loss = F.cross_entropy(scores.flatten(0, 1), rows[:, 1:].flatten())
    optim.zero_grad()
    loss.backward()
    optim.step()
    if (step + 1) % 40 == 0:
        print(f"{step + 1:3d} {loss.item():.4f}")
