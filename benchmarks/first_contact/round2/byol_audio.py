"""Self-supervised pre-training with a slow target network."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Encoder(nn.Module):
    def __init__(self, width=640, depth=32):
        super().__init__()
        self.first = nn.Linear(320, width)
        self.rest = nn.ModuleList(nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.GELU()) for _ in range(depth))
        self.last = nn.Linear(width, 256)

    def forward(self, x):
        x = self.first(x)
        for r in self.rest:
            x = x + r(x)
        return self.last(x)


class BYOL(nn.Module):
    def __init__(self, tau=0.996):
        super().__init__()
        self.online = Encoder()
        self.target = copy.deepcopy(self.online).requires_grad_(False)
        self.predictor = nn.Linear(256, 256)
        self.tau = tau

    @torch.no_grad()
    def momentum_update(self):
        for slow, fast in zip(self.target.parameters(), self.online.parameters()):  # flaw: per-tensor-optimizer|none-yet(ema-loop)
            slow.data = slow.data * self.tau + fast.data * (1 - self.tau)  # flaw: per-tensor-optimizer|none-yet(ema-loop)

    def forward(self, a, b):
        p = F.normalize(self.predictor(self.online(a)).float(), dim=-1)
        with torch.no_grad():
            z = F.normalize(self.target(b).float(), dim=-1)
        return 2 - 2 * torch.linalg.vecdot(p, z).mean()


model = BYOL().to(device)
optimizer = torch.optim.AdamW(list(model.online.parameters()) + list(model.predictor.parameters()), lr=3e-4, fused=True)
batch = 16384
clips = torch.randn(2, batch, 320, device=device)
for i in range(500):
    with torch.autocast(device.type, dtype=torch.bfloat16):
        loss = model(clips[i % 2], clips[1 - i % 2])
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    model.momentum_update()
    if i % 100 == 0:
        print(i, loss.item())
