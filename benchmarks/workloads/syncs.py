"""A small network whose loop reads the loss each step, makes its noise on the host and prints."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
WIDTH, BATCH = (2048, 512) if device == "cuda" else (256, 32)


def main():
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 1)
    )
    model.to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    data = torch.randn(BATCH, WIDTH, device=device)
    target = data.sum(1, keepdim=True)
    total = 0.0
    for _ in range(4000):
        noise = torch.randn(BATCH, WIDTH).to(device)
        loss = ((model(data + 0.01 * noise) - target) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.item()


if __name__ == "__main__":
    main()
