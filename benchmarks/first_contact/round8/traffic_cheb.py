"""Traffic speeds on a road network: Chebyshev graph convolutions and a temporal mixer (after STGCN)."""

import torch
from torch import nn

torch.set_float32_matmul_precision("high")
cuda = torch.cuda.is_available()
device = torch.device("cuda" if cuda else "cpu")
compute_dtype = torch.bfloat16 if cuda else torch.float32

config = {
    "sensors": 4096 if cuda else 24,
    "window": 12,
    "channels": 32 if cuda else 4,
    "order": 5,
    "batch": 8 if cuda else 2,
    "steps": 500 if cuda else 15,
    "lr": 1e-3,
}


def road_network(sensors):
    position = torch.rand(sensors, 2, device=device)
    distance = torch.cdist(position, position)
    adjacency = torch.exp(-((distance / 0.1) ** 2))
    return adjacency * (adjacency > 0.1)


def chebyshev_basis(adjacency, order):
    degree = adjacency.sum(dim=1)
    scale = degree.clamp(min=1e-6).rsqrt()
    laplacian = -(scale[:, None] * adjacency * scale[None, :])
    basis = [torch.eye(len(adjacency), device=adjacency.device), laplacian]
    for _ in range(2, order):
        basis.append(2 * laplacian @ basis[-1] - basis[-2])
    return torch.stack(basis[1:]).to(compute_dtype)


class ChebConv(nn.Module):
    def __init__(self, c_in, c_out, order):
        super().__init__()
        self.own = nn.Linear(c_in, c_out)
        self.hops = nn.ModuleList(nn.Linear(c_in, c_out, bias=False) for _ in range(order - 1))

    def forward(self, x, basis):
        # x: sensors, batch * window, channels
        n, m, _ = x.shape
        out = self.own(x)
        for hop, matrix in zip(self.hops, basis, strict=True):
            out = out + (matrix @ hop(x).reshape(n, -1)).view(n, m, -1)
        return out


class TrafficNet(nn.Module):
    def __init__(self, adjacency, window, channels, order):
        super().__init__()
        self.register_buffer("adjacency", adjacency)
        self.order = order
        self.lift = nn.Linear(1, channels)
        self.conv1 = ChebConv(channels, channels, order)
        self.conv2 = ChebConv(channels, channels, order)
        self.readout = nn.Sequential(nn.Linear(window * channels, 512), nn.ReLU(), nn.Linear(512, window))

    def forward(self, speed):
        n, b, t = speed.shape
        basis = chebyshev_basis(self.adjacency, self.order)  # flaw: constant-rebuilt
        x = self.lift(speed.reshape(n, b * t, 1))
        x = torch.relu(self.conv1(x, basis))
        x = torch.relu(self.conv2(x, basis))
        return self.readout(x.view(n, b, -1))


torch.manual_seed(0)
adjacency = road_network(config["sensors"])
hours = torch.arange(2016, device=device) / 288 * 2 * torch.pi
history = torch.sin(hours + 6 * torch.rand(config["sensors"], 1, device=device))
history += 0.1 * torch.randn_like(history)
span = torch.arange(2 * config["window"], device=device)

model = TrafficNet(adjacency, config["window"], config["channels"], config["order"]).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=config["lr"], fused=cuda)
loss_fn = nn.HuberLoss()

for step in range(config["steps"]):
    start = torch.randint(history.shape[1] - len(span), (config["batch"], 1), device=device)
    clip = history[:, start + span]
    past, future = clip.chunk(2, dim=-1)
    with torch.autocast(device.type, dtype=torch.bfloat16, enabled=cuda):
        forecast = model(past)
    loss = loss_fn(forecast.float(), future)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(f"step {step:4d}  huber {loss.item():.4f}")
print(f"final huber {loss.item():.6f}")
