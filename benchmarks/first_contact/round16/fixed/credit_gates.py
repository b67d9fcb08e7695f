"""Full-batch training of a gated tabular network on credit records."""
import os

import torch
from torch import nn
from torch.nn import functional as F


class GatedLayer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.split = nn.Linear(width, 2 * width)
        self.merge = nn.Linear(width, width)
        self.strength = nn.Parameter(torch.full((width,), 0.1))

    def forward(self, h):
        value, gate = self.split(self.norm(h)).chunk(2, dim=-1)
        return h + self.strength * self.merge(F.silu(value) * torch.sigmoid(gate))


class CreditNet(nn.Module):
    def __init__(self, columns, width, depth):
        super().__init__()
        self.entry = nn.Linear(columns, width)
        self.layers = nn.ModuleList(GatedLayer(width) for _ in range(depth))
        self.exit = nn.Linear(width, 1)

    def forward(self, table):
        h = self.entry(table)
        for layer in self.layers:
            h = layer(h)
        return self.exit(h).squeeze(-1)


def make_table(rows, columns, device):
    g = torch.Generator().manual_seed(21)
    table = torch.randn(rows, columns, generator=g)
    rule = torch.randn(columns, generator=g)
    return table.to(device), (table @ rule > 0).float().to(device)


def main(tiny=os.environ.get("TINY") == "1"):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    rows, columns, width, depth, epochs = (64, 16, 32, 2, 6) if tiny else (1024, 64, 128, 24, 1200)
    table, default = make_table(rows, columns, device)
    net = CreditNet(columns, width, depth).to(device)
    net.compile()
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
    for epoch in range(epochs):
        loss = F.binary_cross_entropy_with_logits(net(table), default)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if epoch % 200 == 0:
            print(f"epoch {epoch:4d} loss {loss.item():.4f}")
    print(f"final {loss.item():.4f}")


main()
