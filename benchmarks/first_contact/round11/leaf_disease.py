"""Vision transformer for leaf diseases; blocks are compiled one by one (they share the code)."""
import torch
import torch.nn.functional as F
from torch import nn

GPU = torch.cuda.is_available()
DEVICE = torch.device("cuda" if GPU else "cpu")


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        return self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attention = Attention(dim, heads)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class LeafTransformer(nn.Module):
    """Patches of 16 x 16, no class token: the mean of the tokens is classified."""

    def __init__(self, side, dim, heads, depth, diseases):
        super().__init__()
        self.embed = nn.Linear(3 * 16 * 16, dim)
        self.places = nn.Parameter(torch.randn((side // 16) ** 2, dim) * 0.02)
        self.blocks = nn.ModuleList(Block(dim, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, diseases)

    def forward(self, patches):
        x = self.embed(patches) + self.places.to(torch.bfloat16)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x.mean(1)))


def patch_pool(count, batch, side, diseases):
    """Patches of the photographs (prepared once, kept on the device) and their labels."""
    gen = torch.Generator(DEVICE).manual_seed(101)
    shape = (count, batch, (side // 16) ** 2, 3 * 16 * 16)
    patches = torch.randn(shape, generator=gen, device=DEVICE, dtype=torch.bfloat16)
    labels = torch.randint(0, diseases, (count, batch), generator=gen, device=DEVICE)
    return patches, labels


class Meter:
    """Sums on the device; the value is fetched only when it is printed."""

    def __init__(self):
        self.total, self.count = torch.zeros((), device=DEVICE), 0

    def add(self, value):
        self.total += value
        self.count += 1

    def flush(self):
        value = self.total.item() / self.count
        self.total.zero_()
        self.count = 0
        return value


def main():
    side, dim, heads, depth, batch, steps, every = (
        (256, 512, 8, 6, 256, 200, 100) if GPU else (32, 32, 2, 2, 4, 6, 3))
    torch.manual_seed(100)
    model = LeafTransformer(side, dim, heads, depth, diseases=64).to(DEVICE)
    if GPU:
        for block in model.blocks:
            block.compile()
    matrices = [p for p in model.parameters() if p.ndim > 1]
    vectors = [p for p in model.parameters() if p.ndim <= 1]
    optimizer = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": 0.05}, {"params": vectors, "weight_decay": 0.0}],
        lr=1e-3, fused=True)
    patches, labels = patch_pool(4, batch, side, 64)
    meter = Meter()
    for step in range(steps):
        with torch.autocast(DEVICE.type, torch.bfloat16):
            logits = model(patches[step % 4])
            loss = F.cross_entropy(logits, labels[step % 4], label_smoothing=0.1)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        meter.add(loss.detach())
        if (step + 1) % every == 0:
            print(f"step {step + 1}: loss {meter.flush():.4f}")


if __name__ == "__main__":
    main()
