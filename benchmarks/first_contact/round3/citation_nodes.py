"""Node classification on a random graph; neighbours are averaged through a fixed edge list."""
import os
import torch
import torch.nn.functional as F
from torch import nn

SMALL = "SMALL" in os.environ
NODES, DEGREE, FEATURES, WIDTH, CLASSES, LAYERS, STEPS = (64, 3, 16, 32, 8, 2, 30) if SMALL else (65536, 8, 256, 512, 40, 4, 80)


class Average(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.own, self.near = nn.Linear(width, width), nn.Linear(width, width, bias=False)

    def forward(self, h, neighbours):
        n = self.norm(h)
        around = F.embedding(neighbours, self.near(n)).mean(1)
        return h + F.relu(self.own(n) + around)


class GraphNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp, self.out = nn.Linear(FEATURES, WIDTH), nn.Linear(WIDTH, CLASSES)
        self.layers = nn.ModuleList(Average(WIDTH) for _ in range(LAYERS))

    def forward(self, x, neighbours):
        h = self.inp(x)
        for layer in self.layers:
            h = layer(h, neighbours)
        return self.out(h)


def train(device, steps):
    torch.manual_seed(40)
    x = torch.randn(NODES, FEATURES, device=device)
    neighbours = torch.randint(NODES, (NODES, DEGREE), device=device)
    label = torch.randint(CLASSES, (NODES,), device=device)
    net = GraphNet().to(device)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
    curve = []
    for _ in range(steps):
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = F.cross_entropy(net(x, neighbours), label)
        opt.zero_grad()
        loss.backward()
        opt.step()
        curve.append(loss.detach())
    return torch.stack(curve).tolist()


print("%.3f" % train("cuda" if torch.cuda.is_available() else "cpu", STEPS)[-1])
