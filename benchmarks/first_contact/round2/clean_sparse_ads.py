from __future__ import annotations

import torch
from torch import nn


class DLRM(nn.Module):
    def __init__(self, rows: int, dim: int, fields: int) -> None:
        super().__init__()
        self.bags = nn.EmbeddingBag(rows, dim, mode="sum", sparse=True)
        self.dense = nn.Sequential(nn.Linear(256, 2048), nn.ReLU(inplace=True), nn.Linear(2048, dim))
        self.top = nn.Sequential(nn.Linear(2 * dim, 4096), nn.ReLU(inplace=True), nn.Linear(4096, 2048), nn.ReLU(inplace=True), nn.Linear(2048, 1))

    def forward(self, ids: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return self.top(torch.cat([self.bags(ids), self.dense(x)], 1)).squeeze(1)


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = DLRM(500_000, 256, 16).to(device)
    table = torch.optim.SGD(model.bags.parameters(), lr=0.1)
    rest = torch.optim.AdamW([*model.dense.parameters(), *model.top.parameters()], lr=1e-3, fused=True)
    loss_fn = nn.BCEWithLogitsLoss()
    batch = 32768
    ids = torch.randint(0, 500_000, (3, batch, 8), device=device)
    x = torch.randn(3, batch, 256, device=device, dtype=torch.bfloat16)
    y = torch.rand(3, batch, device=device).round()
    for i in range(500):
        with torch.autocast(device, dtype=torch.bfloat16):
            score = model(ids[i % 3], x[i % 3])
        loss = loss_fn(score.float(), y[i % 3])
        table.zero_grad(set_to_none=True)
        rest.zero_grad(set_to_none=True)
        loss.backward()
        table.step()
        rest.step()
        if i % 100 == 0:
            print(i, loss.item())


if __name__ == "__main__":
    main()
