"""Wave-height forecasts for ocean buoys with a small transformer; everything comes from one config."""
import os

import torch
import torch.nn.functional as F
from torch import nn

OPTIMIZERS = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
CONFIG = {
    "model": {"channels": 12, "width": 256, "depth": 6, "heads": 8},
    "data": {"buoys": 4, "hours": 24},
    "optimizer": {"name": "adamw", "lr": 3e-4, "weight_decay": 0.02},  # flaw: per-tensor-optimizer
    "steps": 120,
}
if os.environ.get("TINY"):
    CONFIG["model"].update(width=32, depth=2)
    CONFIG["steps"] = 6


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.n1, self.n2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, w = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(mixed.transpose(1, 2).reshape(b, t, w))
        return x + self.down(F.gelu(self.up(self.n2(x))))


class Forecaster(nn.Module):
    def __init__(self, channels, width, depth, heads):
        super().__init__()
        self.read = nn.Linear(channels, width)
        self.layers = nn.Sequential(*(Layer(width, heads) for _ in range(depth)))
        self.tell = nn.Linear(width, channels)

    def forward(self, x):
        return self.tell(self.layers(self.read(x)))


def build(config):
    torch.manual_seed(0)
    model = Forecaster(**config["model"])
    options = dict(config["optimizer"])
    kind = OPTIMIZERS[options.pop("name")]
    return model, kind(model.parameters(), **options)  # flaw: per-tensor-optimizer


def swell(config):
    g = torch.Generator().manual_seed(2)
    b, t, c = config["data"]["buoys"], config["data"]["hours"], config["model"]["channels"]
    clock = torch.arange(t + 1).float()[None, :, None]
    for _ in range(config["steps"]):
        phase = 6.28 * torch.rand(b, 1, c, generator=g)
        speed = 0.2 + 0.5 * torch.rand(b, 1, c, generator=g)
        yield torch.sin(clock * speed + phase)


model, optimizer = build(CONFIG)
log = []
for waves in swell(CONFIG):
    loss = F.smooth_l1_loss(model(waves[:, :-1]), waves[:, 1:])
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    log.append(loss.detach())
log = torch.stack(log)
print(f"first {log[0].item():.4f}  last five {log[-5:].mean().item():.4f}")
