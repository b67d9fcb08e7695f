"""Traffic forecasting on sensors whose graph is learned together with the network."""

import torch
import torch.nn as nn
import torch.nn.functional as F

gpu = torch.cuda.is_available()
device = torch.device("cuda" if gpu else "cpu")

SENSORS = 8192 if gpu else 24
HISTORY, HORIZON = 12, 12
CHANNELS = 64 if gpu else 8
EMBED = 64 if gpu else 4
LAYERS = 3
BATCH = 16 if gpu else 2
STEPS = 120 if gpu else 5


class LearnedGraph(nn.Module):
    """Symmetrically normalised adjacency from sensor embeddings."""

    def __init__(self, sensors, dim):
        super().__init__()
        self.embedding = nn.Parameter(torch.randn(sensors, dim) * 0.3)

    def forward(self):
        adjacency = F.relu(self.embedding @ self.embedding.T)
        degree = adjacency.sum(dim=1).clamp_min(1e-6)
        d_inv_sqrt = torch.diag(degree.pow(-0.5))  # flaw: none-yet(diagonal-matmul)
        return d_inv_sqrt @ adjacency @ d_inv_sqrt  # flaw: none-yet(diagonal-matmul)


class GraphConv(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.mix = nn.Linear(2 * channels, channels)
        self.norm = nn.LayerNorm(channels)

    def forward(self, x, adjacency):
        """x: (sensors, batch, channels)"""
        n, b, c = x.shape
        spread = (adjacency @ x.reshape(n, b * c)).view(n, b, c)
        return x + F.gelu(self.mix(torch.cat([self.norm(x), spread.to(x.dtype)], dim=-1)))


class TrafficNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.graph = LearnedGraph(SENSORS, EMBED)
        self.encode = nn.Linear(HISTORY, CHANNELS)
        self.layers = nn.ModuleList(GraphConv(CHANNELS) for _ in range(LAYERS))
        self.decode = nn.Linear(CHANNELS, HORIZON)

    def forward(self, history):
        adjacency = self.graph()
        x = self.encode(history.permute(2, 0, 1))
        for layer in self.layers:
            x = layer(x, adjacency)
        return self.decode(x).permute(1, 2, 0)


class SpeedReadings:
    def __init__(self, steps=2000 if gpu else 200):
        t = torch.arange(steps, device=device)[:, None] / 288 * 6.283
        phase = torch.rand(SENSORS, device=device) * 6.283
        self.values = torch.sin(t + phase) + 0.1 * torch.randn(steps, SENSORS, device=device)

    def batch(self):
        last = len(self.values) - HISTORY - HORIZON
        start = torch.randint(last, (BATCH, 1), device=device)
        window = self.values[start + torch.arange(HISTORY + HORIZON, device=device)]
        return window[:, :HISTORY], window[:, HISTORY:]


def masked_mae(prediction, truth, missing=-9.0):
    valid = (truth != missing).float()
    return ((prediction - truth).abs() * valid).sum() / valid.sum()


def main():
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    data, model = SpeedReadings(), TrafficNet().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    for step in range(STEPS):
        history, future = data.batch()
        with torch.autocast(device.type, dtype=torch.bfloat16):
            prediction = model(history)
        loss = masked_mae(prediction.float(), future)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 30 == 0 or step == STEPS - 1:
            print(f"step {step}: mae {loss.item():.4f}")


if __name__ == "__main__":
    main()
