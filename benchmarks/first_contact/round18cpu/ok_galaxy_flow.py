"""Flow matching on galaxy summary vectors, with an averaged copy of the weights (well made)."""
import os
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

TINY = os.environ.get("TINY") == "1"
ROWS, WIDTH, STEPS = (64, 32, 8) if TINY else (1024, 320, 100)


class Velocity(nn.Module):
    def __init__(self, features=16):
        super().__init__()
        self.enter = nn.Linear(features + 1, WIDTH)
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(3))
        self.mids = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.leave = nn.Linear(WIDTH, features)

    def forward(self, x, t):
        h = self.enter(torch.cat([x, t], 1))
        for norm, mid in zip(self.norms, self.mids):
            h = h + F.silu(mid(norm(h)))
        return self.leave(h)


def main():
    torch.manual_seed(0)
    data = torch.randn(8, ROWS, 16).cumsum(-1) / 4
    net = Velocity()
    average = AveragedModel(net, multi_avg_fn=get_ema_multi_avg_fn(0.99))
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
    began = time.perf_counter()
    for step in range(STEPS):
        x1 = data[step % 8]
        x0, t = torch.randn_like(x1), torch.rand(ROWS, 1)
        loss = F.mse_loss(net(torch.lerp(x0, x1, t), t), x1 - x0)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        average.update_parameters(net)
    print(f"{(time.perf_counter() - began) / STEPS * 1e3:.1f} ms a step", file=sys.stderr)
    print(f"flow loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
