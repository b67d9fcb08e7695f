import os
import torch
import torch.nn as nn
import torch.nn.functional as F

# plankton images, ViT with gated feed-forward; everything lives on the device
IS_SMALL = os.environ.get("SMALL") == "1"
dim, heads, depth = (48, 2, 2) if IS_SMALL else (1024, 16, 8)
batch, patches, steps = (4, 16, 30) if IS_SMALL else (96, 128, 60)
species = 104


class GatedMLP(nn.Module):
    def __init__(self, dim, ratio=4):
        super().__init__()
        inner = int(2 * ratio * dim / 3)  # flaw: misaligned-matmul
        self.gate = nn.Linear(dim, inner, bias=False)
        self.value = nn.Linear(dim, inner, bias=False)
        self.out = nn.Linear(inner, dim, bias=False)

    def forward(self, x):
        return self.out(F.silu(self.gate(x)) * self.value(x))


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.to_qkv = nn.Linear(dim, dim * 3, bias=False)
        self.to_out = nn.Linear(dim, dim, bias=False)

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.to_qkv(x).chunk(3, -1))
        return self.to_out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


class PreNorm(nn.Module):
    def __init__(self, dim, fn):
        super().__init__()
        self.norm, self.fn = nn.LayerNorm(dim), fn

    def forward(self, x):
        return x + self.fn(self.norm(x))


def make_model():
    body = []
    for _ in range(depth):
        body += [PreNorm(dim, Attention(dim, heads)), PreNorm(dim, GatedMLP(dim))]
    return nn.Sequential(nn.Linear(768, dim), *body, nn.LayerNorm(dim))


device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
body = make_model().to(device)
head = nn.Linear(dim, species).to(device)
params = list(body.parameters()) + list(head.parameters())
opt = torch.optim.AdamW(params, lr=1e-4, weight_decay=0.05, fused=True)

images = torch.randn(2 * batch, patches, 768, device=device, dtype=torch.bfloat16)
labels = torch.randint(species, (2 * batch,), device=device)

for step in range(steps):
    lo = batch * (step % 2)
    with torch.autocast(device, dtype=torch.bfloat16):
        z = body(images[lo:lo + batch]).mean(1)
        loss = F.cross_entropy(head(z), labels[lo:lo + batch])
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 20 == 0:
        print(f"{step:3d} {loss.item():.4f}")
