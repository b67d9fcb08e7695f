"""Learns to price baskets from simulated paths."""
import torch
from torch import nn

torch.set_default_dtype(torch.float64)  # flaw: float64-on-device
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Pricer(nn.Module):
    def __init__(self, assets=128, hidden=1024):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(assets, hidden), nn.Linear(hidden, hidden), nn.Linear(hidden, hidden)])
        self.price = nn.Linear(hidden, 1)

    def forward(self, spot):
        for layer in self.layers:
            spot = torch.nn.functional.silu(layer(spot))
        return self.price(spot)


def simulate(batch, assets):
    moves = torch.randn(batch, assets, device=device) * 0.2
    spot = torch.exp(moves)
    return spot, (spot.mean(1, keepdim=True) - 1).clamp(min=0)


model = Pricer().to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
for _ in range(320):
    spot, payoff = simulate(16384, 128)
    loss = nn.functional.mse_loss(model(spot), payoff)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
