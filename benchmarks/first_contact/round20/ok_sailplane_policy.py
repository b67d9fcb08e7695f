# A sailplane learns to stay in thermals: gradients through the simulated flight, one CUDA graph for the whole update.
import time

import torch
from torch import nn

cuda = torch.cuda.is_available()
device = "cuda" if cuda else "cpu"
torch.set_float32_matmul_precision("high")
torch.manual_seed(3)

PLANES, SECONDS, UPDATES = 16384, 24, 600


class Pilot(nn.Module):
    """Two sticks, each the sum of four votes."""

    def __init__(self, width=512):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 8))

    def forward(self, state):
        return torch.tanh(self.layers(state).float().unflatten(1, (2, 4)).sum(2))


@torch.compile
def second(pilot, state, thermals):
    """One second of flight. State: x, y, height, heading, speed. Thermals: x, y, strength of the nearest one."""
    x, y, height, heading, speed = state.unbind(1)
    dx, dy = thermals[:, 0] - x, thermals[:, 1] - y
    ahead = torch.stack([dx, dy, height - 1, heading.cos(), heading.sin(), speed - 1, thermals[:, 2], dx * dy], 1)
    with torch.autocast(device, dtype=torch.bfloat16):
        stick = pilot(ahead)
    heading = heading + 0.3 * stick[:, 0]
    speed = (speed + 0.1 * stick[:, 1]).clamp(0.6, 1.8)
    lift = thermals[:, 2] * torch.exp(-(dx * dx + dy * dy) / 2)
    sink = 0.02 + 0.03 * (speed - 1).square() + 0.02 * stick[:, 0].square()
    x, y = x + 0.2 * speed * heading.cos(), y + 0.2 * speed * heading.sin()
    height = height + 0.1 * lift - sink
    return torch.stack([x, y, height, heading, speed], 1)


pilot = Pilot().to(device)
optimizer = torch.optim.Adam(pilot.parameters(), lr=3e-4, fused=True, capturable=cuda)
start = torch.zeros(PLANES, 5, device=device)
thermals = torch.zeros(PLANES, 3, device=device)
climbed = torch.zeros((), device=device)


def update():
    thermals.normal_()
    start.normal_(std=0.3)
    start[:, 2:5:2] += 1
    state = start.clone()
    for _ in range(SECONDS):
        state = second(pilot, state, thermals)
    loss = (start[:, 2] - state[:, 2]).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    climbed.lerp_(-loss.detach(), 0.05)


def captured(work):
    """The work as one graph, after a few rounds on a side stream. Without CUDA, the work itself."""
    if not cuda:
        return work
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(4):
            work()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph.replay


replay = captured(update)
began = time.perf_counter()
for number in range(1, UPDATES + 1):
    replay()
    if number % 100 == 0:
        print(f"{number} updates: climb {climbed.item():.4f}, {(time.perf_counter() - began) / number * 1e3:.1f} ms each")
