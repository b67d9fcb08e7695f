"""A vision transformer whose parts come from a registry."""
import torch
from torch import nn

PARTS = {}


def part(name):
    def keep(cls):
        PARTS[name] = cls
        return cls

    return keep


def build(spec):
    spec = dict(spec)
    return PARTS[spec.pop("type")](**spec)


@part("patches")
class Patches(nn.Module):
    def __init__(self, size, dim):
        super().__init__()
        self.size = size
        self.embed = nn.Linear(3 * size * size, dim)

    def forward(self, img):
        b, c, h, w = img.shape
        p = self.size
        x = img.reshape(b, c, h // p, p, w // p, p).permute(0, 2, 4, 1, 3, 5)
        return self.embed(x.reshape(b, (h // p) * (w // p), c * p * p))


@part("mhsa")
class SelfAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads, self.d = heads, dim // heads
        self.q, self.k, self.v, self.o = (nn.Linear(dim, dim) for _ in range(4))

    def split(self, t):
        b, n, _ = t.shape
        return t.view(b, n, self.heads, self.d).transpose(1, 2).reshape(b * self.heads, n, self.d)

    def forward(self, x):
        b, n, c = x.shape
        q, k, v = self.split(self.q(x)), self.split(self.k(x)), self.split(self.v(x))
        q = q / self.d**0.5
        affinity = torch.bmm(q, k.transpose(1, 2))  # flaw: hand-written-attention
        affinity = torch.softmax(affinity, -1)  # flaw: hand-written-attention
        mixed = torch.bmm(affinity, v)  # flaw: hand-written-attention
        return self.o(mixed.view(b, self.heads, n, self.d).transpose(1, 2).reshape(b, n, c))


@part("mlp")
class Mlp(nn.Sequential):
    def __init__(self, dim, ratio=4):
        super().__init__(nn.Linear(dim, dim * ratio), nn.GELU(), nn.Linear(dim * ratio, dim))


@part("block")
class Block(nn.Module):
    def __init__(self, dim, attention, mlp):
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(dim), nn.LayerNorm(dim)])
        self.attention, self.mlp = build(attention), build(mlp)

    def forward(self, x):
        x = x + self.attention(self.norms[0](x))
        return x + self.mlp(self.norms[1](x))


@part("vit")
class ViT(nn.Module):
    def __init__(self, dim, depth, heads, classes):
        super().__init__()
        self.patches = build({"type": "patches", "size": 8, "dim": dim})
        block = {
            "type": "block",
            "dim": dim,
            "attention": {"type": "mhsa", "dim": dim, "heads": heads},
            "mlp": {"type": "mlp", "dim": dim},
        }
        self.blocks = nn.Sequential(*[build(block) for _ in range(depth)])
        self.head = nn.Linear(dim, classes)

    def forward(self, img):
        return self.head(self.blocks(self.patches(img)).mean(1))


device = "cuda" if torch.cuda.is_available() else "cpu"
net = build({"type": "vit", "dim": 512, "depth": 6, "heads": 8, "classes": 1000}).to(device)
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
pictures = torch.randn(128, 3, 224, 224, device=device)
classes = torch.randint(0, 1000, (128,), device=device)
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)

for iteration in range(350):
    chosen = torch.randint(0, 128, (32,), device=device)
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast(device_type=device, dtype=torch.bfloat16):
        loss = criterion(net(pictures[chosen]), classes[chosen])
    loss.backward()
    optimizer.step()
print("final loss", loss.item())
