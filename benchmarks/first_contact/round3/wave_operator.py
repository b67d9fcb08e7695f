"""Operator learning for the wave equation: fields on a grid to fields on a grid."""
import logging
import os
import torch
from torch import nn
import torch.nn.functional as F

log = logging.getLogger("wave")
small = os.environ.get("SMALL") == "1"


class Mix(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(w), nn.Linear(w, 2 * w), nn.Linear(2 * w, w)

    def forward(self, x):
        h = self.up(self.norm(x))
        log.debug("spread %s", tuple(h.shape))  # flaw: graph-break
        return x + self.down(torch.sin(h) * torch.sigmoid(h) + 0.1 * h)


class Operator(nn.Module):
    def __init__(self, w, depth):
        super().__init__()
        self.lift, self.drop = nn.Linear(3, w), nn.Linear(w, 1)
        self.layers = nn.ModuleList(Mix(w) for _ in range(depth))

    def forward(self, u):
        x = self.lift(u)
        for layer in self.layers:
            x = layer(x)
        return self.drop(x)


if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    w, depth, batch, points, steps = (8, 1, 2, 32, 30) if small else (256, 8, 16, 4096, 120)
    net = Operator(w, depth).to(device)
    fast = torch.compile(net)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
    fields = torch.randn(batch * 4, points, 3, device=device)
    later = torch.randn(batch * 4, points, 1, device=device)
    for step in range(steps):
        k = step % 4 * batch
        with torch.autocast(device, dtype=torch.bfloat16):
            guess = fast(fields[k : k + batch])
        loss = F.mse_loss(guess.float(), later[k : k + batch])
        opt.zero_grad()
        loss.backward()
        opt.step()
    print("loss", loss.item())
