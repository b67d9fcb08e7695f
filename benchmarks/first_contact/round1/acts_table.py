"""A wide residual MLP for tabular data; the activation is chosen by name."""
import math

import torch
from torch import nn

ACTIVATIONS = {
    "relu": torch.relu,
    "tanh": torch.tanh,
    "gauss": lambda x: x * 0.5 * (1.0 + torch.erf(x / math.sqrt(2.0))),  # flaw: hand-written-activation
}


def make_block(width, act):
    fn = ACTIVATIONS[act]

    class Res(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.LayerNorm(width)
            self.a = nn.Linear(width, width * 2)
            self.b = nn.Linear(width * 2, width)

        def forward(self, x):
            return x + self.b(fn(self.a(self.norm(x))))

    return Res()


def train(width=1024, blocks=6, rows=16384, epochs=4, per_epoch=100):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    net = nn.Sequential(*[make_block(width, "gauss") for _ in range(blocks)], nn.Linear(width, 8)).to(device)
    opt = torch.optim.AdamW(net.parameters(), fused=True)
    table = torch.randn(4, rows, width, device=device)
    answer = torch.randn(rows, 8, device=device)
    for epoch in range(epochs):
        for i in range(per_epoch):
            with torch.autocast(device, torch.bfloat16):
                loss = nn.functional.smooth_l1_loss(net(table[i % 4]), answer)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"epoch {epoch}: {loss.item():.4f}")


train()
