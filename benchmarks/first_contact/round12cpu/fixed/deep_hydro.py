"""River discharge forecast: a deep, narrow highway network for each of several gauges."""
import torch
from torch import nn

batches_per_run = 600
OPTIMIZERS = {}


def register(name):
    def wrap(fn):
        OPTIMIZERS[name] = fn
        return fn
    return wrap


@register("sgd")
def sgd(params, lr):
    return torch.optim.SGD(params, lr=lr, momentum=0.9, fused=True)


@register("adamw")
def adamw(params, lr):
    return torch.optim.AdamW(params, lr=lr, weight_decay=1e-4, fused=True)


class Highway(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.value = nn.Linear(width, width)
        self.gate = nn.Linear(width, width)
        nn.init.constant_(self.gate.bias, -1.0)

    def forward(self, x):
        return torch.lerp(x, torch.tanh(self.value(x)), torch.sigmoid(self.gate(x)))


class GaugeNet(nn.Module):
    def __init__(self, inputs, width=24, depth=40, leads=7):
        super().__init__()
        self.first = nn.Linear(inputs, width)
        self.stack = nn.Sequential(*(Highway(width) for _ in range(depth)))
        self.last = nn.Linear(width, leads)

    def forward(self, x):
        return self.last(self.stack(self.first(x)))


def rainfall_runoff(days, gen):
    rain = torch.rand(days, generator=gen).pow(6) * 40
    flow = torch.zeros(days)
    store = 0.0
    for d, r in enumerate(rain.tolist()):
        store = 0.93 * store + r
        flow[d] = 0.07 * store
    return rain / 10, flow / 10


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(0)
    gen = torch.Generator().manual_seed(17)
    rain, flow = rainfall_runoff(4000, gen)
    windows = torch.cat([rain.unfold(0, 30, 1)[:-7], flow.unfold(0, 30, 1)[:-7]], 1)
    ahead = flow[30:].unfold(0, 7, 1)
    net = GaugeNet(60)
    opt = OPTIMIZERS["adamw"](net.parameters(), lr=1e-3)
    for b in range(batches_per_run):
        idx = torch.randint(0, len(ahead), (32,), generator=gen)
        opt.zero_grad()
        loss = nn.functional.l1_loss(net(windows[idx]), ahead[idx])
        loss.backward()
        opt.step()
        if (b + 1) % 300 == 0:
            print(f"batch {b + 1}  mae {loss.item():.4f}")
