"""A transformer that forecasts the brightness of Cepheid variables."""
import os
import torch
from torch import nn
import torch.nn.functional as F

TINY = os.environ.get("TINY") == "1"
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
WIDTH, HEADS, DEPTH = (32, 2, 2) if TINY else (1024, 16, 4)
STARS, NIGHTS, STEPS = (2, 32, 4) if TINY else (16, 1024, 220)


class Standardised:
    """For modules that own `gain` and `shift`."""

    def standardise(self, x, which):
        spread, centre = torch.var_mean(x, dim=-1, correction=0, keepdim=True)  # flaw: hand-written-norm
        unit = (x - centre) * torch.rsqrt(spread + 1e-5)  # flaw: hand-written-norm
        return unit * self.gain[which] + self.shift[which]  # flaw: hand-written-norm


class Night(nn.Module, Standardised):
    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(2, WIDTH))
        self.shift = nn.Parameter(torch.zeros(2, WIDTH))
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.mix = nn.Linear(WIDTH, WIDTH)
        self.widen = nn.Linear(WIDTH, 2 * WIDTH)
        self.narrow = nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x):
        q, k, v = self.qkv(self.standardise(x, 0)).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.mix(seen.transpose(1, 2).flatten(2))
        return x + self.narrow(F.gelu(self.widen(self.standardise(x, 1))))


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.rise = nn.Linear(4, WIDTH)
        self.nights = nn.ModuleList(Night() for _ in range(DEPTH))
        self.fall = nn.Linear(WIDTH, 1)

    def forward(self, bands):
        x = self.rise(bands).float()
        for night in self.nights:
            x = night(x)
        return self.fall(x).squeeze(-1)


torch.manual_seed(5)
net = Forecaster().to(DEVICE)
opt = torch.optim.AdamW(net.parameters(), lr=1e-4, fused=True)
t = torch.arange(NIGHTS + 1, device=DEVICE) / 9
curve = torch.zeros((), device=DEVICE)
for step in range(STEPS):
    period = torch.rand(STARS, 1, device=DEVICE) + 0.5
    flux = torch.sin(t / period)
    bands = torch.stack([flux, flux ** 2, flux.abs(), flux.tanh()], -1)[:, :-1]
    with torch.autocast(DEVICE, torch.bfloat16):
        guess = net(bands)
    loss = F.mse_loss(guess.float(), flux[:, 1:])
    loss.backward()
    opt.step()
    opt.zero_grad()
    curve += loss.detach()
print(f"mean loss {curve.item() / STEPS:.4f}")
