"""Glacier melt sequence model: dilated TCN whose blocks come from a registry."""
import torch
from torch import nn

torch.set_num_threads(1)
BLOCKS = {}


def block(kind):
    def add(cls):
        BLOCKS[kind] = cls
        return cls
    return add


@block("dilated")
class Dilated(nn.Module):
    def __init__(self, ch, dilation):
        super().__init__()
        self.pad = 2 * dilation
        self.conv = nn.Conv1d(ch, ch, 3, dilation=dilation)
        self.norm = nn.GroupNorm(1, ch)

    def forward(self, x):
        y = self.conv(nn.functional.pad(x, (self.pad, 0)))
        return x + torch.relu(self.norm(y))


@block("pointwise")
class Pointwise(nn.Module):
    def __init__(self, ch, dilation):
        super().__init__()
        self.net = nn.Sequential(nn.Conv1d(ch, 2 * ch, 1), nn.GELU(), nn.Conv1d(2 * ch, ch, 1))

    def forward(self, x):
        return x + self.net(x)


class MeltModel(nn.Module):
    def __init__(self, inputs=5, ch=32, plan=("dilated", "pointwise") * 4):
        super().__init__()
        self.lift = nn.Conv1d(inputs, ch, 1)
        self.body = nn.ModuleList(BLOCKS[k](ch, 2 ** (i // 2)) for i, k in enumerate(plan))
        self.out = nn.Conv1d(ch, 1, 1)

    def forward(self, x):
        h = self.lift(x)
        for layer in self.body:
            h = layer(h)
        return self.out(h).squeeze(1)


def seasons(n, gen, days=365):
    day = torch.arange(days) / days
    temp = -8 * torch.cos(6.2832 * day) + 3 * torch.randn(n, days, generator=gen)
    other = torch.randn(n, 4, days, generator=gen)
    melt = torch.relu(temp).cumsum(1) / 400
    return torch.cat([temp.unsqueeze(1) / 8, other], 1), melt


def optimise(total):
    torch.manual_seed(19)
    gen = torch.Generator().manual_seed(19)
    model = MeltModel()
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3, fused=True)
    for k in range(total):
        forcing, melt = seasons(4, gen)
        loss = nn.functional.mse_loss(model(forcing), melt)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if k % 200 == 199:
            print(f"{k + 1} seasons batches, mse {loss.item():.5f}")


optimise(total=400)
