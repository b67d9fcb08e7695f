# Patch-based forecaster for household load curves.
import os, torch
import torch.nn as nn, torch.nn.functional as F

SMALL = os.environ.get("SMALL") == "1"
HOUSES, PAST, FUTURE = (4, 64, 16) if SMALL else (128, 4096, 336)
PATCH, STRIDE = 16, 8
WIDTH, LAYERS, HEADS = (32, 1, 2) if SMALL else (256, 3, 4)
STEPS = 30 if SMALL else 80
COUNT = (PAST - PATCH) // STRIDE + 1


def to_patches(series):
    pieces = []
    for i in range(COUNT):  # flaw: python-loop-over-tensor
        piece = series[:, i * STRIDE : i * STRIDE + PATCH]  # flaw: python-loop-over-tensor
        level = piece.mean(dim=1, keepdim=True)  # flaw: python-loop-over-tensor
        spread = piece.std(dim=1, keepdim=True) + 1e-5  # flaw: python-loop-over-tensor
        pieces.append((piece - level) / spread)  # flaw: python-loop-over-tensor
    return torch.stack(pieces, dim=1)  # flaw: python-loop-over-tensor


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(PATCH, WIDTH)
        self.pos = nn.Parameter(torch.randn(COUNT, WIDTH) * 0.02)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, 0.0, F.gelu, batch_first=True, norm_first=True)
            for _ in range(LAYERS)
        )
        self.norm = nn.LayerNorm(WIDTH)
        self.out = nn.Linear(WIDTH, FUTURE)

    def forward(self, series):
        x = self.inp(to_patches(series)) + self.pos
        for layer in self.layers:
            x = layer(x)
        return self.out(self.norm(x).mean(1))


def load_curves(n, device):
    hours = torch.arange(PAST + FUTURE, device=device) / 24 * 6.2832
    phase = torch.rand(n, HOUSES, 1, device=device) * 6.2832
    return torch.sin(hours + phase) + 0.3 * torch.randn(n, HOUSES, PAST + FUTURE, device=device)


device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(12)
curves = load_curves(8, device)
model = Forecaster().to(device)
opt = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
for step in range(STEPS):
    batch = curves[step % len(curves)]
    with torch.autocast(device, dtype=torch.bfloat16):
        guess = model(batch[:, :PAST])
    loss = F.l1_loss(guess.float(), batch[:, PAST:])
    opt.zero_grad()
    loss.backward()
    opt.step()
print("mae", loss.item())
