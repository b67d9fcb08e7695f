"""Many small layers and a long elementwise chain: on a GPU the host cannot launch fast enough."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
LAYERS = 60 if device == "cuda" else 20


class Gate(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x):
        h = self.linear(x)
        h = h * torch.sigmoid(h)
        return x + 0.1 * h


def main():
    torch.manual_seed(0)
    model = nn.Sequential(*(Gate(128) for _ in range(LAYERS)), nn.Linear(128, 10)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    x, y = torch.randn(32, 128, device=device), torch.randint(0, 10, (32,), device=device)
    for _ in range(4000):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
