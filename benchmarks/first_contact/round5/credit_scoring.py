import os
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

# ---- settings -------------------------------------------------------------
S = os.environ.get("SMALL") == "1"
ROWS, COLS = (2000, 12) if S else (200_000, 220)
WIDTH, DEPTH = (32, 2) if S else (2048, 6)
BATCH = 64 if S else 16384
STEPS = 30 if S else 80
LR = 5e-4
device = "cuda" if torch.cuda.is_available() else "cpu"

# ---- data ------------------------------------------------------------------
rng = np.random.default_rng(11)
table = rng.normal(size=(ROWS, COLS))
table = (table - table.mean(0)) / table.std(0)
default = (table[:, 0] * table[:, 1] + 0.5 * table[:, 2] > 0.8).astype(table.dtype)
X = torch.from_numpy(table).to(device)  # flaw: float64-on-device
Y = torch.from_numpy(default).to(device)  # flaw: float64-on-device


# ---- model -----------------------------------------------------------------
class Block(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.norm = nn.LayerNorm(w)
        self.lin = nn.Linear(w, w)

    def forward(self, h):
        return h + F.silu(self.lin(self.norm(h)))


class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(COLS, WIDTH)
        self.blocks = nn.ModuleList([Block(WIDTH) for _ in range(DEPTH)])
        self.out = nn.Linear(WIDTH, 1)

    def forward(self, x):
        h = self.stem(x)
        for b in self.blocks:
            h = b(h)
        return self.out(h).squeeze(-1)


torch.manual_seed(0)
model = Scorer().to(device, X.dtype)
opt = torch.optim.AdamW(model.parameters(), lr=LR, weight_decay=1e-2, fused=True)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, STEPS)

# ---- training --------------------------------------------------------------
for step in range(STEPS):
    pick = torch.randint(ROWS, (BATCH,), device=device)
    with torch.autocast(device, dtype=torch.bfloat16):
        score = model(X[pick])
    loss = F.binary_cross_entropy_with_logits(score.to(Y.dtype), Y[pick])
    loss.backward()
    opt.step()
    sched.step()
    opt.zero_grad()
    if step % 20 == 0:
        print(f"{step:4d}  bce {loss.item():.4f}")

with torch.inference_mode():
    hit = ((model(X[:BATCH]) > 0) == (Y[:BATCH] > 0.5)).float().mean()
print("train accuracy", hit.item())
