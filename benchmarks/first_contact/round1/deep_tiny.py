"""A very deep and narrow network for sensor readings."""
import torch
from torch import nn


class Unit(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.norm, self.lin, self.gate = nn.LayerNorm(n), nn.Linear(n, n), nn.Linear(n, n)

    def forward(self, x):
        y = self.norm(x)
        return x + torch.sigmoid(self.gate(y)) * torch.relu(self.lin(y))


class Deep(nn.Module):
    def __init__(self, n=192, depth=60):
        super().__init__()
        self.units = nn.ModuleList(Unit(n) for _ in range(depth))
        self.out = nn.Linear(n, 6)

    def forward(self, x):
        for u in self.units:
            x = u(x)
        return self.out(x)


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.set_float32_matmul_precision("high")
    model = Deep().to(device)  # flaw: launch-bound
    opt = torch.optim.AdamW(model.parameters(), fused=True)
    readings = torch.randn(1000, 512, 192, device=device)
    state = torch.randint(6, (1000, 512), device=device)
    for x, y in zip(readings, state):
        loss = nn.functional.cross_entropy(model(x), y)  # flaw: launch-bound
        opt.zero_grad()
        loss.backward()
        opt.step()


if __name__ == "__main__":
    main()
