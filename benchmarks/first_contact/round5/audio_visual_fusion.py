"""Late fusion of picture, sound and text embeddings with a wide network."""
import os

import torch
import torch.nn.functional as F
from torch import nn

SIZES = {"picture": 1024, "sound": 512, "text": 768}


class Branch(nn.Module):
    def __init__(self, d_in, d):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(d_in, d), nn.GELU(), nn.LayerNorm(d))

    def forward(self, x):
        return self.net(x)


class Fusion(nn.Module):
    def __init__(self, d, hidden, layers, n_out):
        super().__init__()
        self.branches = nn.ModuleDict({k: Branch(v, d) for k, v in SIZES.items()})
        mods, last = [], d * len(SIZES)
        for _ in range(layers):
            mods += [nn.Linear(last, hidden), nn.GELU()]
            last = hidden
        self.trunk = nn.Sequential(*mods)
        self.out = nn.Linear(last, n_out)

    def forward(self, batch):
        parts = [self.branches[k](batch[k]) for k in SIZES]
        return self.out(self.trunk(torch.cat(parts, -1)))


class Mean:
    """Running mean that stays on the device."""

    def __init__(self, device):
        self.total, self.count = torch.zeros((), device=device), 0

    def add(self, value):
        self.total += value.detach()
        self.count += 1

    def read(self):
        return (self.total / self.count).item()


class Session:
    def __init__(self, net, device, lr):
        self.net, self.device = net, device
        self.opt = torch.optim.AdamW(net.parameters(), lr=lr, fused=True)
        self.mean = Mean(device)

    def forward_loss(self, batch, goal):
        with torch.autocast(self.device.type, dtype=torch.bfloat16):
            return F.cross_entropy(self.net(batch), goal)

    def one(self, batch, goal):
        loss = self.forward_loss(batch, goal)
        loss.backward()
        self.opt.step()
        self.opt.zero_grad(False)  # flaw: zeroed-gradients
        self.mean.add(loss)


def features(n, device, n_out):
    batch = {k: torch.randn(n, v, device=device, dtype=torch.bfloat16) for k, v in SIZES.items()}
    return batch, torch.randint(n_out, (n,), device=device)


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if os.environ.get("SMALL") == "1":
        n, d, hidden, layers, steps = 4, 32, 64, 2, 30
    else:
        n, d, hidden, layers, steps = 512, 2048, 7168, 5, 100
    net = Fusion(d, hidden, layers, 512).to(device)
    session = Session(net, device, 1e-4)
    batch, goal = features(n, device, 512)
    for step in range(steps):
        session.one(batch, goal)
        if step % 25 == 24:
            print(step + 1, f"{session.mean.read():.4f}")


if __name__ == "__main__":
    main()
