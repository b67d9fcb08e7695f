"""Matrix factorisation with towers; clears gradients by hand."""
import torch
from torch import nn


class Towers(nn.Module):
    def __init__(self, dim=4096, depth=5):
        super().__init__()
        self.user = nn.Sequential(*[m for _ in range(depth) for m in (nn.Linear(dim, dim), nn.ReLU())])
        self.item = nn.Sequential(*[m for _ in range(depth) for m in (nn.Linear(dim, dim), nn.ReLU())])

    def forward(self, u, i):
        return (self.user(u) * self.item(i)).sum(-1)


class Fitter:
    def __init__(self, net, lr):
        self.net = net
        self.opt = torch.optim.SGD(net.parameters(), lr, fused=True)

    def clear(self):
        for group in self.opt.param_groups:
            for w in group["params"]:
                if w.grad is not None:
                    w.grad.detach_()
                    w.grad.zero_()  # flaw: zeroed-gradients

    def step(self, u, i, rating):
        self.clear()
        loss = nn.functional.mse_loss(self.net(u, i).float(), rating)
        loss.backward()
        self.opt.step()


device = "cuda" if torch.cuda.is_available() else "cpu"
fitter = Fitter(Towers().to(device, torch.bfloat16), 1e-3)
users = torch.randn(1024, 4096, device=device, dtype=torch.bfloat16)
items = torch.randn(1024, 4096, device=device, dtype=torch.bfloat16)
ratings = torch.rand(1024, device=device)
for _ in range(500):
    fitter.step(users, items, ratings)
