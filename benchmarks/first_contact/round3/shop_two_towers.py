import os, torch
from torch import nn
import torch.nn.functional as F

cfg = {"users": 5000, "items": 4000, "dim": 32, "wide": 64, "batch": 64, "steps": 30} if os.environ.get("SMALL") else \
      {"users": 200_000, "items": 100_000, "dim": 64, "wide": 1024, "batch": 12288, "steps": 70}
device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(21)


class Tower(nn.Module):
    def __init__(self, rows, extra):
        super().__init__()
        self.ids = nn.Embedding(rows, cfg["dim"])
        self.net = nn.Sequential(
            nn.Linear(cfg["dim"] + extra, cfg["wide"]), nn.ReLU(),
            nn.Linear(cfg["wide"], cfg["wide"]), nn.ReLU(),
            nn.Linear(cfg["wide"], cfg["wide"] // 2),
        )

    def forward(self, ids, features):
        return F.normalize(self.net(torch.cat([self.ids(ids), features], 1)).float(), dim=1)


class TwoTower(nn.Module):
    def __init__(self):
        super().__init__()
        self.user, self.item = Tower(cfg["users"], 32), Tower(cfg["items"], 64)

    def forward(self, batch):
        with torch.autocast(device, dtype=torch.bfloat16):
            return self.user(batch["user"], batch["u_feat"]), self.item(batch["item"], batch["i_feat"])


def in_batch_loss(u, v, log_q):
    scores = u @ v.T / 0.07 - log_q  # flaw: fp32-matmul
    return F.cross_entropy(scores, torch.arange(len(u), device=u.device))


def synth():
    n = cfg["batch"]
    return {
        "user": torch.randint(cfg["users"], (n,), device=device),
        "item": torch.randint(cfg["items"], (n,), device=device),
        "u_feat": torch.randn(n, 32, device=device),
        "i_feat": torch.randn(n, 64, device=device),
    }


model = TwoTower().to(device)
opt = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
pool = [synth() for _ in range(8)]
log_q = torch.rand(cfg["batch"], device=device)

for step in range(cfg["steps"]):
    u, v = model(pool[step % 8])
    loss = in_batch_loss(u, v, log_q)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if (step + 1) % 35 == 0:
        print(step + 1, loss.item())
