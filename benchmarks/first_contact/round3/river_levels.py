# River level forecasts: channel-independent patches, one transformer for all gauges.
import argparse
import os
import torch
import torch.nn.functional as F
from torch import nn

small = os.environ.get("SMALL") == "1"
parser = argparse.ArgumentParser()
parser.add_argument("--gauges", type=int, default=4 if small else 256)
parser.add_argument("--past", type=int, default=64 if small else 2048)
parser.add_argument("--future", type=int, default=16 if small else 96)
parser.add_argument("--width", type=int, default=32 if small else 384)
parser.add_argument("--depth", type=int, default=1 if small else 6)
parser.add_argument("--steps", type=int, default=30 if small else 80)
PATCH, STRIDE = 32, 16


class Forecaster(nn.Module):
    def __init__(self, past, future, width, depth):
        super().__init__()
        count = (past - PATCH) // STRIDE + 1
        self.inp = nn.Linear(PATCH, width)
        self.where = nn.Parameter(0.02 * torch.randn(count, width))
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(width, 4, 4 * width, 0.0, F.gelu, batch_first=True, norm_first=True) for _ in range(depth)
        )
        self.out = nn.Linear(count * width, future)

    def forward(self, series):
        x = self.inp(series.unfold(1, PATCH, STRIDE)) + self.where
        for layer in self.layers:
            x = layer(x)
        return self.out(x.flatten(1))


def main():
    args = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    levels = torch.randn(8, args.gauges, args.past + args.future, device=device).cumsum(-1)
    model = Forecaster(args.past, args.future, args.width, args.depth).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, fused=True)
    for step in range(args.steps):
        past, future = levels[step % 8].split([args.past, args.future], dim=1)
        spread, level = torch.std_mean(past, dim=1, keepdim=True)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            guess = model((past - level) / spread)
        loss = F.l1_loss(guess.float(), (future - level) / spread)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 40 == 39:
            print(step + 1, round(loss.item(), 4))


main()
