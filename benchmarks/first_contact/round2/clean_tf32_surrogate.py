"""Surrogate of a simulator: a wide residual MLP, TF32 products."""
import torch
from torch import nn

torch.set_float32_matmul_precision("high")
device = "cuda" if torch.cuda.is_available() else "cpu"


class Wide(nn.Module):
    def __init__(self, n_in: int, n_out: int, width: int, depth: int):
        super().__init__()
        self.enter = nn.Linear(n_in, width)
        self.hidden = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.leave = nn.Linear(width, n_out)

    def forward(self, x):
        x = torch.relu(self.enter(x))
        for layer in self.hidden:
            x = torch.relu(layer(x))
        return self.leave(x)


def batches(x, y, size):
    while True:
        for k in range(0, len(x) - size + 1, size):
            yield x[k:k + size], y[k:k + size]


model = Wide(64, 8, 4096, 4).to(device)
opt = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)
n = 8192 if device == "cuda" else 64
x, y = torch.randn(8 * n, 64, device=device), torch.randn(8 * n, 8, device=device)
for step, (a, b) in zip(range(400), batches(x, y, n)):
    loss = nn.functional.mse_loss(model(a), b)
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    if step % 100 == 0:
        print(step, loss.item())
