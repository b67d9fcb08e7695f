import os
import math
import torch
import torch.nn as nn
import torch.nn.functional as F

ACTS = {}


def register(name):
    def wrap(f):
        ACTS[name] = f
        return f
    return wrap


@register("relu")
def _relu(x):
    return F.relu(x)


@register("gelu")
def _gelu(x):
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)  # flaw: hand-written-activation
    return x * 0.5 * (1 + torch.tanh(inner))  # flaw: hand-written-activation


class PointMLP(nn.Module):
    def __init__(self, dims, act):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(a, b) for a, b in zip(dims[:-1], dims[1:])])
        self.act = ACTS[act]

    def forward(self, x):
        for l in self.layers:
            x = self.act(l(x))
        return x


class PartNet(nn.Module):
    def __init__(self, c, parts, act="gelu"):
        super().__init__()
        self.local = PointMLP([6, c, c, 2 * c], act)
        self.wide = PointMLP([2 * c, 4 * c], act)
        self.mix = PointMLP([6 * c, 2 * c, c], act)
        self.head = nn.Linear(c, parts)

    def forward(self, pts):
        f = self.local(pts)
        g = self.wide(f).amax(1, keepdim=True).expand(-1, pts.size(1), -1)
        return self.head(self.mix(torch.cat([f, g], -1)))


def get_cloud(n, points, device):
    xyz = torch.randn(n, points, 3, device=device)
    normal = F.normalize(torch.randn(n, points, 3, device=device), dim=-1)
    part = torch.randint(0, 48, (n, points), device=device)
    return torch.cat([xyz, normal], -1), part


def main():
    small = os.getenv("SMALL") == "1"
    device = "cuda" if torch.cuda.is_available() else "cpu"
    c, bs, points, iters = (16, 2, 64, 30) if small else (128, 64, 4096, 100)
    net = PartNet(c, 48).to(device)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
    clouds, parts = get_cloud(bs * 4, points, device)
    for i in range(iters):
        idx = torch.randint(0, bs * 4, (bs,), device=device)
        with torch.autocast(device, dtype=torch.bfloat16):
            logits = net(clouds[idx])
            loss = F.cross_entropy(logits.flatten(0, 1), parts[idx].flatten())
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if i % 25 == 0:
            print("iter", i, "loss", loss.item())


main()
