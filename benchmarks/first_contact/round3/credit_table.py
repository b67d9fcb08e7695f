# credit_table.py: residual network on a wide numeric table
import os
import torch
from torch import nn, optim

SM = os.environ.get("SMALL") == "1"
ROWS, COLS, HID, NBLK, BS, STEPS = (256, 24, 32, 2, 16, 30) if SM else (65536, 512, 2048, 6, 8192, 70)
REGISTRY = {}


def register(name):
    def add(cls):
        REGISTRY[name] = cls
        return cls
    return add


@register("act/mish")
class SmoothGate(nn.Module):
    def forward(self, x):
        return x * torch.tanh(torch.log1p(torch.exp(x)))  # flaw: hand-written-activation


@register("block/res")
class ResBlock(nn.Module):
    def __init__(self, width, act):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.first = nn.Linear(width, width)
        self.act = REGISTRY[f"act/{act}"]()
        self.second = nn.Linear(width, width)

    def forward(self, x):
        return x + self.second(self.act(self.first(self.norm(x))))


def build(spec):
    body = [nn.Linear(COLS, HID)]
    body += [REGISTRY[f"block/{spec['block']}"](HID, spec["act"]) for _ in range(spec["n"])]
    return nn.Sequential(*body, nn.LayerNorm(HID), nn.Linear(HID, 8))


def loop(device):
    torch.manual_seed(0)
    table = torch.randn(ROWS, COLS, device=device)
    rating = table[:, :8].argmax(1)
    net = build({"block": "res", "act": "mish", "n": NBLK}).to(device)
    opt = optim.AdamW(net.parameters(), lr=2e-4, fused=True)
    crit = nn.CrossEntropyLoss()
    order = torch.randperm(ROWS, device=device)
    for i in range(STEPS):
        pick = order[i * BS % ROWS :][:BS]
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = crit(net(table[pick]), rating[pick])
        loss.backward()
        opt.step()
        opt.zero_grad()
    return loss.detach()


print("done, loss", loop("cuda" if torch.cuda.is_available() else "cpu").item())
