"""Sequential recommendation (SASRec) with sampled negatives shared by the batch."""

import torch
import torch.nn as nn
import torch.nn.functional as F

CUDA = torch.cuda.is_available()
device = "cuda" if CUDA else "cpu"
torch.manual_seed(0)
torch.set_float32_matmul_precision("high")

ITEMS = 40_000 if CUDA else 300
LENGTH = 200 if CUDA else 12
DIM, HEADS, LAYERS = (512, 8, 6) if CUDA else (16, 2, 1)
NEGATIVES = 4096 if CUDA else 32
BATCH = 96 if CUDA else 4
USERS = 20_000 if CUDA else 64
STEPS = 260 if CUDA else 5


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.qkv, self.proj = nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, DIM)
        self.up, self.down = nn.Linear(DIM, 4 * DIM), nn.Linear(4 * DIM, DIM)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, DIM))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class SASRec(nn.Module):
    def __init__(self):
        super().__init__()
        self.items = nn.Embedding(ITEMS, DIM)
        self.positions = nn.Parameter(torch.randn(LENGTH, DIM) * 0.02)
        self.layers = nn.Sequential(*[Layer() for _ in range(LAYERS)])
        self.norm = nn.LayerNorm(DIM)
        nn.init.normal_(self.items.weight, std=0.02)

    def forward(self, history, target, negatives):
        state = self.norm(self.layers(self.items(history) + self.positions))
        positive = (state * self.items(target)).sum(-1, keepdim=True)
        negative = state @ self.items(negatives).T
        return torch.cat([positive.to(negative.dtype), negative], dim=-1)


clicks = (torch.rand(USERS, LENGTH + 1, device=device) ** 2 * ITEMS).long()
model = SASRec().to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
first = torch.zeros(BATCH * LENGTH, dtype=torch.long, device=device)

for step in range(STEPS):
    sequence = clicks[torch.randint(USERS, (BATCH,), device=device)]
    negatives = torch.randint(ITEMS, (NEGATIVES - 1,), device=device)
    with torch.autocast(device, dtype=torch.bfloat16):
        scores = model(sequence[:, :-1], sequence[:, 1:], negatives)
        loss = F.cross_entropy(scores.flatten(0, 1), first)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    if step % 40 == 0 or step == STEPS - 1:
        print(f"step {step}: sampled softmax {loss.item():.4f}")
