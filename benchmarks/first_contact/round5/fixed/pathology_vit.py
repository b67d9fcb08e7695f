"""Slide-level training on pathology tiles; encoder with register tokens."""
import os
import torch
import torch.nn as nn
import torch.nn.functional as F

CONF = {
    "normal": {"width": 896, "heads": 14, "layers": 10, "tiles": 48, "tokens": 256, "steps": 60},
    "small": {"width": 32, "heads": 2, "layers": 2, "tiles": 2, "tokens": 16, "steps": 30},
}[("normal", "small")[os.environ.get("SMALL") == "1"]]


class Attn(nn.Module):
    def __init__(self, w, h):
        super().__init__()
        self.h = h
        self.qkv = nn.Linear(w, 3 * w)
        self.o = nn.Linear(w, w)

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, self.h, -1)).permute(2, 0, 3, 1, 4).unbind(0)
        return self.o(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


class Layer(nn.Module):
    def __init__(self, w, h):
        super().__init__()
        self.na, self.nb = nn.LayerNorm(w), nn.LayerNorm(w)
        self.attn = Attn(w, h)
        self.mlp = nn.Sequential(nn.Linear(w, 4 * w), nn.GELU(), nn.Linear(4 * w, w))

    def forward(self, x):
        x = x + self.attn(self.na(x))
        return x + self.mlp(self.nb(x))


class SlideEncoder(nn.Module):
    def __init__(self, width, heads, layers, tokens, n_reg=8):
        super().__init__()
        self.reg = nn.Parameter(torch.randn(n_reg, width) * 0.02)
        self.proj = nn.Linear(588, width, bias=True)
        self.place = nn.Parameter(torch.randn(tokens, width) * 0.02)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 16)

    def run(self, x, layer):
        if self.training:
            return layer(x)
        return layer(x)

    def forward(self, tiles):
        x = self.proj(tiles) + self.place
        x = torch.cat((self.reg.expand(len(x), -1, -1), x), 1)
        for layer in self.layers:
            x = self.run(x, layer)
        return self.head(self.norm(x[:, :8]).mean(1))


def train():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(40)
    c = dict(CONF)
    steps, n = c.pop("steps"), c.pop("tiles")
    net = SlideEncoder(**c).to(device).train()
    opt = torch.optim.AdamW(net.parameters(), lr=5e-5, fused=True)
    tiles = torch.randn(n, c["tokens"], 588, device=device)
    grade = torch.randint(16, (n,), device=device)
    for i in range(steps):
        with torch.autocast(device.type, dtype=torch.bfloat16):
            loss = F.cross_entropy(net(tiles), grade)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if i % 15 == 14:
            print(f"{i + 1} of {steps}: {loss.item():.4f}")


if __name__ == "__main__":
    train()
