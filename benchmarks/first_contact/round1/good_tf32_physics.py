"""A surrogate for a simulation, in TF32 because bfloat16 is too coarse for it."""
import torch
from torch import nn

torch.set_float32_matmul_precision("high")


class Surrogate(nn.Module):
    def __init__(self, dim=2048, depth=6):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(dim, dim) for _ in range(depth))

    def forward(self, x):
        for layer in self.layers:
            x = x + nn.functional.silu(layer(x))
        return x


def generator(n, device):
    pool = torch.randn(2, 4, 8192, 2048, device=device)
    for i in range(n):
        yield pool[0, i % 4], pool[1, i % 4]


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    net = Surrogate().to(device)
    net.compile()
    opt = torch.optim.AdamW(net.parameters(), 1e-4, fused=True)
    for x, y in generator(320, device):
        loss = nn.functional.mse_loss(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()


main()
