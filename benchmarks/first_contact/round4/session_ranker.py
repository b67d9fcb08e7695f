"""Next-item model over shopping sessions; batches come in length buckets."""
import os
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

SMALL = os.environ.get("SMALL") == "1"
ITEMS = 256 if SMALL else 16384
DIM = 32 if SMALL else 512
BATCH = 4 if SMALL else 2048
BUCKETS = [6, 8, 10] if SMALL else [24, 32, 40, 48, 56, 64, 72]
STEPS = 30 if SMALL else 90
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


@torch.compile(dynamic=False, backend="eager" if SMALL else "inductor")  # flaw: recompilation
def summarize(states, recency, gate_w, gate_b):
    """Gated, recency-weighted mean over the session."""
    n = states.shape[1]
    age = torch.arange(n - 1, -1, -1, device=states.device, dtype=torch.float32)
    weight = torch.exp(-F.softplus(recency) * age)[None, :, None]
    gate = torch.sigmoid(states.float() * gate_w + gate_b)
    kept = gate * torch.tanh(states.float()) * weight
    return kept.sum(1) / (gate * weight).sum(1).clamp_min(1e-4)


class SessionNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.items = nn.Embedding(ITEMS, DIM)
        self.gru = nn.GRU(DIM, DIM, batch_first=True)
        self.recency = nn.Parameter(torch.tensor(-2.0))
        self.gate_w = nn.Parameter(torch.ones(DIM))
        self.gate_b = nn.Parameter(torch.zeros(DIM))
        self.mlp = nn.Sequential(nn.Linear(DIM, 4 * DIM), nn.GELU(), nn.Linear(4 * DIM, DIM))

    def forward(self, sessions):
        states, _ = self.gru(self.items(sessions))
        pooled = summarize(states, self.recency, self.gate_w, self.gate_b)
        return F.linear(self.mlp(pooled), self.items.weight)


def sessions(steps, seed=0):
    rng = random.Random(seed)
    gen = torch.Generator(device=device).manual_seed(seed)
    for _ in range(steps):
        n = rng.choice(BUCKETS)
        ids = torch.randint(ITEMS, (BATCH, n + 1), device=device, generator=gen)
        yield ids[:, :-1].contiguous(), ids[:, -1]


torch.manual_seed(0)
net = SessionNet().to(device)
opt = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
trail = []
for clicked, following in sessions(STEPS):
    with torch.autocast(device.type, dtype=torch.bfloat16):
        scores = net(clicked)
        loss = F.cross_entropy(scores, following)
    loss.backward()
    opt.step()
    opt.zero_grad()
    trail.append(loss.detach())
print("mean of the last ten:", torch.stack(trail[-10:]).mean().item())
