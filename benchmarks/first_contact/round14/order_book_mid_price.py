"""Predicts the move of the mid price from one snapshot of an order book, online with small batches."""
import contextlib
import os

import torch
from torch import nn
from torch.nn import functional as F

TINY = os.environ.get("TINY") == "1"
LEVELS, WIDTH, DEPTH, BATCH, STEPS = (10, 32, 3, 8, 4) if TINY else (40, 192, 24, 256, 1400)


class LevelGate(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))
        self.shift = nn.Parameter(torch.zeros(width))
        self.value = nn.Linear(width, width)
        self.gate = nn.Linear(width, width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        y = F.layer_norm(x, x.shape[-1:]) * self.scale + self.shift
        y = torch.tanh(self.value(y)) * torch.sigmoid(self.gate(y))
        return x + 0.1 * self.out(y)


class BookNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.lift = nn.Linear(4 * LEVELS, WIDTH)
        self.gates = nn.ModuleList(LevelGate(WIDTH) for _ in range(DEPTH))
        self.move = nn.Linear(WIDTH, 3)

    def forward(self, book):
        x = self.lift(book)
        for gate in self.gates:
            x = gate(x)
        return self.move(x)


@contextlib.contextmanager
def update(optimizer):
    optimizer.zero_grad(set_to_none=True)
    yield
    optimizer.step()


def ticks(device):
    history = torch.randn(100_000 if not TINY else 200, 4 * LEVELS, device=device)
    moves = (history[:, 0] - history[:, 1]).sign().long() + 1
    for _ in range(STEPS):
        rows = torch.randint(len(history), (BATCH,), device=device)
        yield history[rows], moves[rows]


def main():
    torch.manual_seed(4)
    torch.set_float32_matmul_precision("high")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    net = BookNet().to(device)  # flaw: launch-bound
    optimizer = torch.optim.AdamW(net.parameters(), lr=5e-4, fused=True)
    running = torch.zeros((), device=device)
    for book, move in ticks(device):
        with update(optimizer):
            loss = F.cross_entropy(net(book), move)
            loss.backward()
        running.lerp_(loss.detach(), 0.05)
    print(f"running loss {running.item():.3f}")


main()
