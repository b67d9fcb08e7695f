"""Long-horizon forecasting with TSMixer on a synthetic electricity-like panel."""

import argparse

import torch
import torch.nn as nn

parser = argparse.ArgumentParser()
parser.add_argument("--lookback", type=int, default=512)
parser.add_argument("--horizon", type=int, default=96)
parser.add_argument("--series", type=int, default=320)
parser.add_argument("--hidden", type=int, default=1024)
parser.add_argument("--blocks", type=int, default=4)
parser.add_argument("--batch", type=int, default=96)
parser.add_argument("--steps", type=int, default=150)
parser.add_argument("--seed", type=int, default=2021)
args = parser.parse_args()

device = "cuda" if torch.cuda.is_available() else "cpu"
if device == "cpu":
    args.lookback, args.horizon, args.series, args.hidden = 32, 8, 16, 32
    args.blocks, args.batch, args.steps = 2, 4, 15

torch.manual_seed(args.seed)
torch.set_float32_matmul_precision("highest")  # flaw: fp32-matmul


class MixerBlock(nn.Module):
    def __init__(self, length, series, hidden):
        super().__init__()
        self.time_norm = nn.LayerNorm(length)
        self.time_mix = nn.Sequential(nn.Linear(length, hidden), nn.GELU(), nn.Linear(hidden, length))
        self.series_norm = nn.LayerNorm(series)
        self.series_mix = nn.Sequential(nn.Linear(series, hidden), nn.GELU(), nn.Linear(hidden, series))

    def forward(self, x):
        # x: batch, series, time
        x = x + self.time_mix(self.time_norm(x))
        y = x.transpose(1, 2)
        return x + self.series_mix(self.series_norm(y)).transpose(1, 2)


class TSMixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(
            *[MixerBlock(args.lookback, args.series, args.hidden) for _ in range(args.blocks)]
        )
        self.head = nn.Linear(args.lookback, args.horizon)

    def forward(self, x):
        last = x[..., -1:]
        return self.head(self.blocks(x - last)) + last


def make_panel(length):
    t = torch.arange(length, device=device, dtype=torch.float32)
    period = torch.randint(12, 200, (args.series, 3, 1), device=device)
    phase = 6.28 * torch.rand(args.series, 3, 1, device=device)
    waves = torch.sin(6.28 * t / period + phase).mean(1)
    return waves + 0.05 * torch.randn(args.series, length, device=device).cumsum(-1) / 10


panel = make_panel(20_000 if device == "cuda" else 800)
split = int(panel.shape[1] * 0.9)
window = torch.arange(args.lookback + args.horizon, device=device)

model = TSMixer().to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-4, fused=device == "cuda")
criterion = nn.MSELoss()

model.train()
for step in range(args.steps):
    start = torch.randint(split - len(window), (args.batch, 1), device=device)
    clips = panel[:, start + window].transpose(0, 1)
    past, future = clips[..., : args.lookback], clips[..., args.lookback :]
    optimizer.zero_grad(set_to_none=True)
    loss = criterion(model(past), future)  # flaw: fp32-matmul
    loss.backward()
    optimizer.step()
    if (step + 1) % 40 == 0:
        print(f"step {step + 1}: train mse {loss.item():.4f}")

model.eval()
with torch.inference_mode():
    start = torch.randint(split, panel.shape[1] - len(window), (args.batch, 1), device=device)
    clips = panel[:, start + window].transpose(0, 1)
    error = criterion(model(clips[..., : args.lookback]), clips[..., args.lookback :])
print(f"test mse {error.item():.5f}")
