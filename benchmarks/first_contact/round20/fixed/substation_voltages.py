# State estimation on a power grid: voltages of all substations at once, from a few noisy meters.
# A deep residual network on the grid's graph; every step sees the whole grid with another draw of meters.
import time

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(13)
rng = torch.Generator(device=device).manual_seed(13)

STATIONS, WIDTH, DEPTH, STEPS = 2048, 128, 32, 900

# The grid: stations in the plane, joined to their eight nearest ones, lines weighted by their length.
place = torch.rand(STATIONS, 2, generator=rng, device=device)
apart = torch.cdist(place, place)
near = apart.topk(9, largest=False).indices
lines = torch.zeros(STATIONS, STATIONS, device=device).scatter_(1, near, 1.0)
lines = torch.maximum(lines, lines.T) * torch.exp(-apart * 8)
root = lines.sum(1).rsqrt()
spread = root[:, None] * lines * root

# The voltages: a smooth field over the plane, the same in each step, seen through different meters.
waves = torch.randn(2, 24, generator=rng, device=device) * 6
phase = torch.rand(24, generator=rng, device=device) * 6.28
volts = (place @ waves + phase).sin().mean(1, keepdim=True) * 3
volts = volts + 0.05 * torch.randn(STATIONS, 1, generator=rng, device=device)


class Hop(nn.Module):
    """One hop along the lines, with a pull back to the first layer's state."""

    def __init__(self, share):
        super().__init__()
        self.share = share
        self.norm = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 2 * WIDTH)
        self.down = nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x, first, spread):
        moved = torch.lerp(spread @ self.norm(x).to(spread.dtype), first, self.share)
        return x + self.down(F.silu(self.up(moved)))


class GridState(nn.Module):
    def __init__(self, spread):
        super().__init__()
        self.register_buffer("spread", spread)
        self.enter = nn.Linear(4, WIDTH)
        self.hops = nn.ModuleList(Hop(0.1 + 0.4 * i / DEPTH) for i in range(DEPTH))
        self.leave = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 1))

    def forward(self, seen):
        first = x = self.enter(seen)
        for hop in self.hops:
            x = hop(x, first, self.spread)
        return self.leave(x)


model = GridState(spread.bfloat16()).to(device)
model.compile(mode="reduce-overhead")
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, weight_decay=1e-3, fused=True)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-3, total_steps=STEPS)

error = torch.zeros((), device=device)
began = time.perf_counter()
for step in range(1, STEPS + 1):
    metered = (torch.rand(STATIONS, 1, generator=rng, device=device) < 0.15).float()
    noise = torch.randn(STATIONS, 1, generator=rng, device=device) * 0.02
    seen = torch.cat([metered * (volts + noise), metered, place], 1)
    with torch.autocast(device, dtype=torch.bfloat16):
        guess = model(seen)
    loss = F.mse_loss(guess.float(), volts)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    schedule.step()
    error += loss.detach()
    if step % 100 == 0:
        print(f"step {step}: mean error {error.item() / 100:.4f}, {(time.perf_counter() - began) / step * 1e3:.2f} ms each")
        error.zero_()
