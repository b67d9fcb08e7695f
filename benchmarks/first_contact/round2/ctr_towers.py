from typing import Iterable

import torch
from torch import Tensor, nn


class MLP(nn.Module):
    def __init__(self, dims: Iterable[int]) -> None:
        super().__init__()
        dims = list(dims)
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(dims, dims[1:]))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers[:-1]:
            x = torch.relu(layer(x))
        return self.layers[-1](x)


class Session:
    def __init__(self, device: str) -> None:
        self.device = device
        self.model = MLP([4096, 8192, 8192, 8192, 1]).to(device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-2, fused=True)
        self.bce = nn.BCEWithLogitsLoss()

    def clear(self) -> None:
        for p in self.model.parameters():
            if p.grad is not None:
                p.grad.zero_()  # flaw: zeroed-gradients

    def update(self, x: Tensor, y: Tensor) -> Tensor:
        with torch.autocast(self.device, dtype=torch.bfloat16):
            out = self.model(x).squeeze(-1)
        loss = self.bce(out.float(), y)
        loss.backward()
        self.optimizer.step()
        self.clear()
        return loss.detach()


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    session = Session(device)
    x = torch.randn(4, 1024, 4096, device=device)
    y = torch.rand(4, 1024, device=device).round()
    for i in range(600):
        loss = session.update(x[i % 4], y[i % 4])
        if i % 200 == 0:
            print(i, loss.item())


if __name__ == "__main__":
    main()
