"""Regression with a loop that protects itself from bad layers."""
import torch
import torch.nn as nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Guarded(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.a, self.b = nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        y = self.b(nn.functional.silu(self.a(self.norm(x))))
        if not torch.isfinite(y).all():  # flaw: sync-in-step
            y = torch.nan_to_num(y)
        return x + y


class Net(nn.Module):
    def __init__(self, features=128, width=768, depth=12):
        super().__init__()
        self.enter, self.leave = nn.Linear(features, width), nn.Linear(width, 4)
        self.depth = nn.ModuleList(Guarded(width) for _ in range(depth))

    def forward(self, x):
        x = self.enter(x)
        for d in self.depth:
            x = d(x)
        return self.leave(x)


def minibatches(x, y, size, epochs):
    for _ in range(epochs):
        order = torch.randperm(len(x), device=x.device)
        for k in range(0, len(x) - size + 1, size):
            take = order[k:k + size]
            yield x[take], y[take]


net = Net().to(device)
opt = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
x, y = torch.randn(65536, 128, device=device), torch.randn(65536, 4, device=device)
for i, (a, b) in enumerate(minibatches(x, y, 4096, 40)):
    with torch.autocast(device.type, dtype=torch.bfloat16):
        out = net(a)
    loss = nn.functional.mse_loss(out.float(), b)
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    if i % 100 == 0:
        print(i, loss.item())
