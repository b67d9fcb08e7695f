"""Predict the next patch features of a video with a causal transformer over all its patches."""
import torch
from torch import nn
from torch.nn import functional as F


class CausalAttention(nn.Module):
    def __init__(self, dim, heads, length):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.out = nn.Linear(dim, dim, bias=False)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(b, n, d))


class Block(nn.Module):
    def __init__(self, dim, heads, length):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attention = CausalAttention(dim, heads, length)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class VideoTransformer(nn.Module):
    def __init__(self, features, dim, depth, heads, frames, patches):
        super().__init__()
        self.inp = nn.Linear(features, dim)
        self.when = nn.Parameter(0.02 * torch.randn(frames, 1, dim))
        self.where = nn.Parameter(0.02 * torch.randn(1, patches, dim))
        self.blocks = nn.ModuleList(Block(dim, heads, frames * patches) for _ in range(depth))
        self.norm = nn.LayerNorm(dim)
        self.out = nn.Linear(dim, features)

    def forward(self, x):
        h = self.inp(x) + (self.when + self.where).flatten(0, 1)[: x.shape[1]]
        for block in self.blocks:
            h = block(h)
        return self.out(self.norm(h))


def clips(batch, frames, patches, features, device):
    """Smoothly moving patch features."""
    start = torch.randn(batch, 1, patches, features, device=device)
    drift = 0.1 * torch.randn(batch, frames, patches, features, device=device)
    return (start + drift.cumsum(1)).flatten(1, 2).to(torch.bfloat16)


def main():
    on_gpu = torch.cuda.is_available()
    device = torch.device("cuda" if on_gpu else "cpu")
    torch.manual_seed(0)
    frames, patches, features, dim, depth, heads, batch, steps = (
        (16, 144, 192, 512, 8, 8, 6, 120) if on_gpu else (2, 8, 12, 32, 2, 2, 2, 2)
    )
    model = VideoTransformer(features, dim, depth, heads, frames, patches).to(device)
    decay = [p for p in model.parameters() if p.ndim >= 2]
    rest = [p for p in model.parameters() if p.ndim < 2]
    groups = [{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=3e-4, betas=(0.9, 0.95), fused=on_gpu)
    data = [clips(batch, frames, patches, features, device) for _ in range(4)]
    for step in range(steps):
        x = data[step % 4]
        with torch.autocast(device.type, dtype=torch.bfloat16):
            predicted = model(x[:, :-patches])
            loss = F.mse_loss(predicted, x[:, patches:])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if step % 40 == 0:
            print(f"step {step:4d} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
