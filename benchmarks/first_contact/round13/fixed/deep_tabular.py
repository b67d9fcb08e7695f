"""Very deep residual MLP on tabular data. Forward and backward are one CUDA graph."""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

tiny = os.environ.get("TINY") == "1"
P = dict(rows=2048, batch=64, width=32, blocks=4, iters=60) if tiny else \
    dict(rows=1 << 18, batch=16384, width=256, blocks=96, iters=480)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
cuda = device.type == "cuda"
torch.manual_seed(77)
torch.set_float32_matmul_precision("high")


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.a = nn.Linear(width, 2 * width)
        self.b = nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.b(F.gelu(self.a(self.norm(x))))


class GraphedGradients:
    """Replays forward and backward; gradients land in the same tensors each time."""

    def __init__(self, net, x, y):
        self.net, self.x, self.y = net, x.clone(), y.clone()
        self.graph = None
        if cuda:
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for _ in range(3):
                    self.compute()
            torch.cuda.current_stream().wait_stream(side)
            self.graph = torch.cuda.CUDAGraph()
            self.net.zero_grad(set_to_none=True)
            with torch.cuda.graph(self.graph):
                self.loss = self.compute(clear=False)

    def compute(self, clear=True):
        if clear:
            self.net.zero_grad(set_to_none=True)
        with torch.autocast(device.type, torch.bfloat16, enabled=cuda):
            guess = self.net(self.x).mean(1)
        loss = F.mse_loss(guess.float(), self.y)
        loss.backward()
        return loss.detach()

    def __call__(self, x, y):
        self.x.copy_(x)
        self.y.copy_(y)
        if self.graph is None:
            return self.compute()
        self.graph.replay()
        return self.loss


class SlowFilter:
    """Amplifies the slow part of each gradient, pulls weights to where they began, and averages them."""

    def __init__(self, params, memory=0.95, gain=1.5, pull=1e-3, decay=0.998):
        self.params = list(params)
        copies = lambda: [p.detach().clone() for p in self.params]
        self.origin, self.average = copies(), copies()
        self.trend = [torch.zeros_like(p) for p in self.params]
        self.memory, self.gain, self.pull, self.decay = memory, gain, pull, decay

    @torch.no_grad()
    def before(self):
        grads = [p.grad for p in self.params]
        torch._foreach_lerp_(self.trend, grads, 1 - self.memory)
        torch._foreach_add_(grads, self.trend, alpha=self.gain)
        torch._foreach_add_(grads, self.params, alpha=self.pull)
        torch._foreach_sub_(grads, self.origin, alpha=self.pull)

    @torch.no_grad()
    def after(self):
        torch._foreach_lerp_(self.average, self.params, 1 - self.decay)


table = torch.randn(P["rows"], P["width"], device=device)
goal = torch.sin(table[:, :8].sum(1)) + table[:, 8] * table[:, 9]
w, n = P["width"], P["blocks"]
net = nn.Sequential(*(Residual(w) for _ in range(n)), nn.LayerNorm(w), nn.Linear(w, 8)).to(device)
with torch.no_grad():
    for block in net[:n]:
        block.b.weight.mul_(n ** -0.5)
opt = torch.optim.SGD(net.parameters(), lr=0.005, momentum=0.9, nesterov=True, fused=cuda)
slow = SlowFilter(net.parameters())
order = torch.randint(P["rows"], (P["iters"], P["batch"]), device=device)
gradients = GraphedGradients(net, table[order[0]], goal[order[0]])
history = torch.zeros((), device=device)
t0 = time.perf_counter()
for rows in order:
    history += gradients(table[rows], goal[rows])
    slow.before()
    opt.step()
    slow.after()
drift = torch.stack(torch._foreach_norm(slow.average)).sum()
print(f"mse {history.item() / P['iters']:.5f}  averaged weights {drift.item():.4f}")
print(f"{time.perf_counter() - t0:.2f} s")
