"""Forecast of gridded weather: patch transformer rolled out for two steps."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint  # flaw: needless-checkpointing

CONFIG = {
    "cuda": dict(variables=24, grid=(128, 256), patch=8, dim=768, depth=8, heads=12, batch=16, steps=120),
    "cpu": dict(variables=4, grid=(16, 32), patch=8, dim=32, depth=2, heads=2, batch=1, steps=2),
}


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        x = x + self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, d))
        return x + self.mlp(self.n2(x))


class Forecaster(nn.Module):
    def __init__(self, variables, grid, patch, dim, depth, heads, **_):
        super().__init__()
        self.patch = patch
        self.rows, self.cols = grid[0] // patch, grid[1] // patch
        self.inp = nn.Linear(variables * patch * patch, dim)
        self.position = nn.Parameter(0.02 * torch.randn(self.rows * self.cols, dim))
        self.blocks = nn.ModuleList(Block(dim, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(dim)
        self.out = nn.Linear(dim, variables * patch * patch)

    def forward(self, x):
        tokens = F.pixel_unshuffle(x, self.patch).flatten(2).transpose(1, 2)
        h = self.inp(tokens) + self.position
        for block in self.blocks:
            h = checkpoint(block, h, use_reentrant=False)  # flaw: needless-checkpointing
        change = self.out(self.norm(h)).transpose(1, 2).unflatten(2, (self.rows, self.cols))
        return x + F.pixel_shuffle(change, self.patch)


def latitude_weights(rows, device):
    latitude = torch.linspace(-torch.pi / 2, torch.pi / 2, rows, device=device)
    weight = latitude.cos().clamp(min=1e-3)
    return (weight / weight.mean()).view(1, 1, rows, 1)


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    config = CONFIG[device.type]
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    model = Forecaster(**config).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, betas=(0.9, 0.95), fused=device.type == "cuda")
    weight = latitude_weights(config["grid"][0], device)
    shape = (6, config["batch"], config["variables"], *config["grid"])
    states = torch.randn(shape, device=device).cumsum(0) * 0.3
    for step in range(config["steps"]):
        first = step % 4
        state, loss = states[first], 0.0
        for lead in (1, 2):
            with torch.autocast(device.type, dtype=torch.bfloat16):
                state = model(state)
            error = (state.float() - states[first + lead]).square()
            loss = loss + (weight * error).mean() / 2
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step}: weighted error {loss.item():.4f}")


if __name__ == "__main__":
    main()
