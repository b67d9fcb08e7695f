import torch
from data import Numbers
from torch import nn
from torch.utils.data import DataLoader


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.inner = nn.Linear(width, 4 * width)
        self.outer = nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = torch.relu(self.inner(x))
        return x + self.outer(h)


def main() -> None:
    loader = DataLoader(Numbers(), batch_size=32)
    model = nn.Sequential(Block(256), Block(256), nn.Linear(256, 10))
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(20):
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()


if __name__ == "__main__":
    main()
