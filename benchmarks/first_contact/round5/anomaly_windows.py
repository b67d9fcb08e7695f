# Masked reconstruction of machine telemetry; exported from a notebook.

# %% imports
import os
import torch
import torch.nn as nn
import torch.nn.functional as F

# %% sizes
SMALL = os.environ.get("SMALL") == "1"
B, T, C = (4, 16, 5) if SMALL else (64, 256, 32)
D, HEADS, LAYERS = (16, 2, 1) if SMALL else (512, 8, 6)
STEPS = 30 if SMALL else 90
device = "cuda" if torch.cuda.is_available() else "cpu"

# %% signals
torch.manual_seed(0)
t = torch.linspace(0, 40, T, device=device)
freq = torch.rand(6 * B, 1, C, device=device) * 3
signals = torch.sin(freq * t[None, :, None]) + 0.05 * torch.randn(6 * B, T, C, device=device)


# %% model
class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(C, D)
        self.place = nn.Parameter(torch.randn(T, D) * 0.02)
        self.layers = nn.ModuleList()
        for _ in range(LAYERS):
            self.layers.append(nn.ModuleDict({
                "ln1": nn.LayerNorm(D), "qkv": nn.Linear(D, 3 * D), "proj": nn.Linear(D, D),
                "ln2": nn.LayerNorm(D), "up": nn.Linear(D, 4 * D), "down": nn.Linear(4 * D, D),
            }))
        self.out = nn.Linear(D, C)

    def attend(self, m, x):
        b, n, d = x.shape
        q, k, v = m["qkv"](x).view(b, n, 3, HEADS, d // HEADS).permute(2, 0, 3, 1, 4)
        return m["proj"](F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, d))

    def feed(self, m, x):
        h = F.gelu(m["up"](x)).float()  # flaw: layout-churn
        return m["down"](h)

    def forward(self, x):
        x = self.inp(x) + self.place
        for m in self.layers:
            x = x + self.attend(m, m["ln1"](x))
            x = x + self.feed(m, m["ln2"](x))
        return self.out(x)


# %% training
model = Encoder().to(device)
opt = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
for step in range(STEPS):
    k = step % 6
    x = signals[k * B:(k + 1) * B]
    visible = (torch.rand(B, T, 1, device=device) > 0.25).to(x.dtype)
    with torch.autocast(device, torch.bfloat16):
        rec = model(x * visible)
    err = F.mse_loss(rec.float(), x, reduction="none")
    loss = torch.mean(err * (1 - visible)) / 0.25
    loss.backward()
    opt.step()
    opt.zero_grad()
    if step % 30 == 0:
        print(step, loss.item())

# %% thresholds
model.eval()
with torch.inference_mode(), torch.autocast(device, torch.bfloat16):
    err = (model(signals[:B]).float() - signals[:B]).square().mean((1, 2))
print("p95", err.quantile(0.95).item())
