"""Fine-tuning of a deep, narrow vision transformer with layer-wise learning-rate decay."""
import os
import re
from contextlib import nullcontext

import torch
import torch.nn as nn
import torch.nn.functional as F

TINY = os.environ.get("TINY") == "1"
RECIPE = {
    "model": {"dim": 64 if TINY else 384, "depth": 3 if TINY else 40, "heads": 2 if TINY else 6, "patch": 8, "image": 32 if TINY else 128},
    "optim": {"lr": 5e-4, "decay": 0.95, "weight_decay": 0.05},
    "train": {"batch": 4 if TINY else 64, "steps": 6 if TINY else 130, "classes": 64},
}


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.proj = (nn.Linear(dim, dim) for _ in range(4))
        self.q_norm, self.k_norm = nn.LayerNorm(dim // heads), nn.LayerNorm(dim // heads)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = (f(x).view(b, n, self.heads, -1).transpose(1, 2) for f in (self.q, self.k, self.v))
        q, k = self.q_norm(q).to(v.dtype), self.k_norm(k).to(v.dtype)
        return self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, d))


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = Attention(dim, heads)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class ViT(nn.Module):
    def __init__(self, dim, depth, heads, patch, image, classes):
        super().__init__()
        self.patch = patch
        self.embed = nn.Linear(3 * patch * patch, dim)
        self.pos = nn.Parameter(torch.zeros(1, (image // patch) ** 2, dim))
        self.blocks = nn.ModuleList(Block(dim, heads) for _ in range(depth))
        self.head = nn.Linear(dim, classes)

    def forward(self, img):
        x = F.pixel_unshuffle(img, self.patch).flatten(2).transpose(1, 2)
        x = self.embed(x) + self.pos
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean(1))


def depth_of(name, depth):
    m = re.match(r"blocks\.(\d+)\.", name)
    return int(m.group(1)) + 1 if m else (depth + 1 if name.startswith("head") else 0)


def grouped(model, lr, decay, weight_decay, depth):
    groups = {}
    for name, p in model.named_parameters():
        scale = decay ** (depth + 1 - depth_of(name, depth))
        wd = 0.0 if p.ndim < 2 else weight_decay
        groups.setdefault((scale, wd), {"params": [], "lr": lr * scale, "weight_decay": wd})["params"].append(p)
    return list(groups.values())


def main(recipe):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    cuda = device.type == "cuda"
    torch.manual_seed(31)
    torch.set_float32_matmul_precision("high")
    m, o, t = recipe["model"], recipe["optim"], recipe["train"]
    net = ViT(**m, classes=t["classes"]).to(device)
    if not TINY:
        for block in net.blocks:
            block.compile()
    opt = torch.optim.AdamW(grouped(net, **o, depth=m["depth"]), fused=cuda)
    images = torch.randn(4, t["batch"], 3, m["image"], m["image"], device=device)
    labels = torch.randint(t["classes"], (4, t["batch"]), device=device)
    amp = torch.autocast("cuda", torch.bfloat16) if cuda else nullcontext()
    losses = torch.zeros(t["steps"], device=device)
    for i in range(t["steps"]):
        with amp:
            loss = F.cross_entropy(net(images[i % 4]), labels[i % 4])
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        losses[i] = loss.detach()
    print("loss: first %.5f, last %.5f" % (losses[0].item(), losses[-1].item()))


if __name__ == "__main__":
    main(RECIPE)
