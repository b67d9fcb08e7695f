import copy
import os
import torch
import torch.nn as nn
import torch.nn.functional as F

BASE = {
    "model": {"width": 320, "depth": 16, "heads": 5, "context": 256},
    "data": {"batch": 16, "files": 8},
    "optim": {"kind": "AdamW", "args": {"lr": 0.0004, "betas": [0.9, 0.98], "fused": True}},
    "steps": 120,
}


def load_config():
    cfg = copy.deepcopy(BASE)
    if os.environ.get("SMALL") == "1":
        cfg["model"].update(width=16, depth=2, heads=2, context=16)
        cfg["data"].update(batch=2, files=2)
        cfg["steps"] = 30
    return cfg


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.qkv, self.o = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        b, t, w = x.size()
        q, k, v = self.qkv(self.norms[0](x)).view(b, t, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4)
        x = x + self.o(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, w))
        return x + self.mlp(self.norms[1](x))


class ByteLM(nn.Module):
    def __init__(self, width, depth, heads, context):
        super().__init__()
        self.byte = nn.Embedding(256, width)
        self.place = nn.Parameter(torch.zeros(context, width))
        self.layers = nn.Sequential(*[Layer(width, heads) for _ in range(depth)])
        self.out = nn.Linear(width, 256)

    def forward(self, x):
        return self.out(self.layers(self.byte(x) + self.place))


def make_optimizer(model, cfg):
    kind = getattr(torch.optim, cfg["kind"])
    return kind(model.parameters(), **cfg["args"])


def main():
    cfg = load_config()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(1)
    model = ByteLM(**cfg["model"]).to(device)
    opt = make_optimizer(model, cfg["optim"])
    batch, ctx = cfg["data"]["batch"], cfg["model"]["context"]
    text = torch.randint(256, (cfg["data"]["files"], batch, ctx + 1), device=device)
    for step in range(cfg["steps"]):
        piece = text[step % len(text)]
        with torch.autocast(device, torch.bfloat16):
            logits = model(piece[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), piece[:, 1:].flatten())
        loss.backward()
        opt.step()
        opt.zero_grad()
        if step % 40 == 0:
            print(f"{step:4d} bits/byte {loss.item() * 1.4427:.3f}")


if __name__ == "__main__":
    main()
