import os, torch
from torch import nn
import torch.nn.functional as F

SM = os.environ.get("SMALL") == "1"
TRACKS, DIM, HEADS, LAYERS, LEN, BATCH, NEG, STEPS = (300, 32, 2, 1, 16, 2, 8, 30) if SM else (32768, 512, 8, 6, 256, 64, 512, 80)
dev = "cuda" if torch.cuda.is_available() else "cpu"


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.qkv, self.o = nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, DIM)
        self.ff = nn.Sequential(nn.Linear(DIM, 4 * DIM), nn.GELU(), nn.Linear(4 * DIM, DIM))

    def forward(self, x):
        q, k, v = self.qkv(self.a(x)).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.o(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.ff(self.b(x))


class Playlist(nn.Module):
    """Sampled softmax with negatives shared by the whole batch."""

    def __init__(self):
        super().__init__()
        self.tracks, self.order = nn.Embedding(TRACKS, DIM), nn.Embedding(LEN, DIM)
        self.body = nn.Sequential(*[Layer() for _ in range(LAYERS)], nn.LayerNorm(DIM))

    def forward(self, played):
        x = self.body(self.tracks(played[:, :-1]) + self.order.weight)
        positive = (x * self.tracks(played[:, 1:])).sum(-1, keepdim=True)
        others = self.tracks(torch.randint(TRACKS, (NEG,), device=played.device))
        scores = torch.cat([positive, x @ others.T], -1).flatten(0, 1) / DIM**0.5
        return F.cross_entropy(scores.float(), torch.zeros(len(scores), dtype=torch.long, device=played.device))


torch.manual_seed(0)
model = Playlist().to(dev)
opt = torch.optim.AdamW(model.parameters(), lr=5e-4, fused=True)
plays = torch.randint(TRACKS, (20, BATCH, LEN + 1), device=dev)
losses = []
for step in range(STEPS):
    with torch.autocast(dev, dtype=torch.bfloat16):
        loss = model(plays[step % 20])
    opt.zero_grad()
    loss.backward()
    opt.step()
    losses.append(loss.detach())
print(torch.stack(losses)[-5:].mean().item())
