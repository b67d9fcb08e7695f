"""CTC-style frame classifier with macaron feed-forwards."""
import os
import torch
import torch.nn as nn
import torch.nn.functional as F

REG = {}


def register(name):
    def deco(obj):
        REG[name] = obj
        return obj
    return deco


@register("swish")
class Swish(nn.Module):
    def forward(self, x):
        return F.silu(x)


@register("ffn")
class MacaronFFN(nn.Module):
    def __init__(self, d, mult, act):
        super().__init__()
        self.seq = nn.Sequential(nn.LayerNorm(d), nn.Linear(d, mult * d), REG[act](), nn.Linear(mult * d, d))

    def forward(self, x):
        return torch.add(x, self.seq(x), alpha=0.5)


@register("mhsa")
class SelfAttention(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads, self.norm = heads, nn.LayerNorm(d)
        self.qkv, self.o = nn.Linear(d, 3 * d), nn.Linear(d, d)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.norm(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        return x + self.o(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


class ConformerLike(nn.Module):
    def __init__(self, mels, d, heads, layers, tokens):
        super().__init__()
        self.inp = nn.Linear(mels, d)
        layer = lambda: nn.Sequential(REG["ffn"](d, 8, "swish"), REG["mhsa"](d, heads), REG["ffn"](d, 8, "swish"))
        self.layers = nn.Sequential(*[layer() for _ in range(layers)])
        self.out = nn.Linear(d, tokens)

    def forward(self, mel):
        return self.out(self.layers(self.inp(mel)))


PRESETS = {
    "small": dict(model=dict(mels=8, d=16, heads=2, layers=1, tokens=8), batch=2, frames=24, steps=30),
    "base": dict(model=dict(mels=80, d=256, heads=4, layers=8, tokens=1024), batch=32, frames=512, steps=100),
}


def fit(preset):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    p = PRESETS[preset]
    net = ConformerLike(**p["model"]).to(device)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
    pool = torch.randn(4, p["batch"], p["frames"], p["model"]["mels"], device=device)
    labels = torch.randint(p["model"]["tokens"], (4, p["batch"], p["frames"]), device=device)
    for i in range(p["steps"]):
        with torch.autocast(device, torch.bfloat16):
            logits = net(pool[i % 4])
            loss = F.cross_entropy(logits.flatten(0, 1), labels[i % 4].flatten())
        loss.backward()
        opt.step()
        opt.zero_grad()
        if i % 30 == 0:
            print(f"[{i}/{p['steps']}] {loss.item():.3f}")


if __name__ == "__main__":
    fit("small" if os.environ.get("SMALL") == "1" else "base")
