"""Traffic speed forecast on a sensor graph: graph convolution and a GRU over time."""
import torch
from torch import nn

torch.set_num_threads(1)
N_SLOTS = 160
SENSORS, PAST = 64, 10


def sensor_graph(gen):
    xy = torch.rand(SENSORS, 2, generator=gen)
    a = torch.exp(-torch.cdist(xy, xy).square() / 0.02)
    a = torch.where(a > 0.1, a, torch.zeros_like(a))
    return a / a.sum(1, keepdim=True)


class GraphGRU(nn.Module):
    def __init__(self, adjacency, hidden=32):
        super().__init__()
        self.register_buffer("adjacency", adjacency)
        self.mix = nn.Linear(2, hidden)
        self.gru = nn.GRU(hidden, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 3)

    def forward(self, speed):
        both = torch.stack([speed, speed @ self.adjacency.T], -1)
        h = torch.relu(self.mix(both)).transpose(1, 2).flatten(0, 1)
        _, last = self.gru(h)
        return self.out(last[0]).view(speed.shape[0], SENSORS, 3)


def speeds(adjacency, length, gen):
    x = torch.randn(SENSORS, generator=gen)
    rows = []
    for noise in torch.randn(length, SENSORS, generator=gen):
        x = 0.9 * (adjacency @ x) + 0.4 * noise
        rows.append(x)
    return torch.stack(rows)


def windows(record, starts):
    past = torch.stack([record[s:s + PAST] for s in starts])
    ahead = torch.stack([record[s + PAST:s + PAST + 3].T for s in starts])
    return past, ahead


def epoch(model, opt, record, held_out, gen):
    curve = []
    for slot in range(N_SLOTS):
        start = torch.randint(0, len(record) - PAST - 3, (6,), generator=gen).tolist()
        past, ahead = windows(record, start)
        loss = nn.functional.mse_loss(model(past), ahead)
        opt.zero_grad()
        loss.backward()
        opt.step()
        past, ahead = held_out
        held_out_loss = nn.functional.mse_loss(model(past), ahead)  # flaw: graph-kept-alive|grad-in-eval
        curve.append(held_out_loss)  # flaw: graph-kept-alive|grad-in-eval
    return curve


def main():
    torch.manual_seed(15)
    gen = torch.Generator().manual_seed(15)
    adjacency = sensor_graph(gen)
    record = speeds(adjacency, 2000, gen)
    held_out = windows(record[1800:], range(0, 180, 12))
    model = GraphGRU(adjacency)
    opt = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    curve = epoch(model, opt, record[:1800], held_out, gen)
    for k in range(0, len(curve), 40):
        print(f"slots {k}..{k + 39}: held-out mse {torch.stack(curve[k:k + 40]).mean().item():.5f}")


if __name__ == "__main__":
    main()
