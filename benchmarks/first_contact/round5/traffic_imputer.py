"""Fill gaps in road sensor readings with a denoising residual MLP."""
import os

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def sizes() -> dict:
    if os.environ.get("SMALL") == "1":
        return dict(batch=16, window=12, sensors=8, width=32, depth=1, chunks=10, rounds=3)
    return dict(batch=1024, window=96, sensors=320, width=1024, depth=3, chunks=6, rounds=13)


def synthesize(rows: int, window: int, sensors: int) -> Tensor:
    out = torch.empty(rows, window, sensors)
    phase = torch.rand(rows, 1, 1) * 6.28
    tick = torch.linspace(0, 6.28, window)[None, :, None]
    lane = torch.linspace(0.5, 1.5, sensors)[None, None, :]
    torch.sin(phase + tick * lane, out=out)
    return out


class Residual(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Imputer(nn.Module):
    def __init__(self, sensors: int, width: int, depth: int):
        super().__init__()
        self.inp = nn.Linear(sensors, width)
        self.body = nn.Sequential(*(Residual(width) for _ in range(depth)))
        self.out = nn.Linear(width, sensors)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.body(self.inp(x)))


def batches(readings: Tensor, size: int, device: str):
    order = torch.randperm(len(readings) // size).tolist()
    for k in order:
        yield readings[k * size:(k + 1) * size].to(device)  # flaw: pageable-host-copy


def main() -> None:
    s = sizes()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(7)
    readings = synthesize(s["batch"] * s["chunks"], s["window"], s["sensors"])  # flaw: pageable-host-copy
    net = Imputer(s["sensors"], s["width"], s["depth"]).to(device)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
    for r in range(s["rounds"]):
        for clean in batches(readings, s["batch"], device):
            seen = torch.rand(clean.shape[0], clean.shape[1], 1, device=device) > 0.3
            with torch.autocast(device, torch.bfloat16):
                guess = net(clean * seen)
                loss = F.mse_loss(guess, clean)
            loss.backward()
            opt.step()
            opt.zero_grad()
        print("round", r, "mse %.4f" % loss.item())


main()
