"""Six-hour forecast of global fields from a reanalysis archive that fits in host memory."""
import logging
import math

import torch
import torch.nn.functional as F
from torch import nn

logging.basicConfig(level=logging.INFO, format="%(message)s")
log = logging.getLogger("forecast")


class Archive:
    """Hourly fields (time, variable, lat, lon) in half precision."""

    def __init__(self, hours, variables, lat, lon, device):
        gen = torch.Generator().manual_seed(0)
        coarse = torch.randn(4, variables, lat // 8, lon // 8, generator=gen)
        base = F.interpolate(coarse, size=(lat, lon), mode="bilinear").half()
        frames = [torch.roll(base[t % 4], shifts=2 * t, dims=-1) for t in range(hours)]
        self.fields = torch.stack(frames)  # flaw: pageable-host-copy
        self.device = device

    def window(self, start, length, lead):
        """Inputs at start..start+length and targets `lead` hours later."""
        chunk = self.fields[start:start + length + lead]
        chunk = chunk.to(self.device)  # flaw: pageable-host-copy
        return chunk[:length], chunk[lead:]


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.up, self.down = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        x = x + self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, d))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Forecaster(nn.Module):
    def __init__(self, variables, lat, lon, patch, dim, depth):
        super().__init__()
        self.patch, self.grid = patch, (lat // patch, lon // patch)
        self.embed = nn.Linear(variables * patch * patch, dim)
        self.position = nn.Parameter(torch.randn(self.grid[0] * self.grid[1], dim) * 0.02)
        self.blocks = nn.ModuleList(Block(dim, max(1, dim // 64)) for _ in range(depth))
        self.norm, self.out = nn.LayerNorm(dim), nn.Linear(dim, variables * patch * patch)

    def fold(self, x):
        b, v, _, _ = x.shape
        (h, w), p = self.grid, self.patch
        return x.view(b, v, h, p, w, p).permute(0, 2, 4, 1, 3, 5).reshape(b, h * w, v * p * p)

    def forward(self, tokens):
        x = self.embed(tokens) + self.position
        for block in self.blocks:
            x = block(x)
        return self.out(self.norm(x))


def latitude_weight(lat, patch, lon, variables, device):
    """cos(latitude) per patch row, so that the poles do not dominate the loss."""
    w = torch.linspace(-math.pi / 2, math.pi / 2, lat // patch + 2, device=device)[1:-1].cos()
    return (w / w.mean()).repeat_interleave(lon // patch)[None, :, None]


def main():
    cuda = torch.cuda.is_available()
    device = torch.device("cuda" if cuda else "cpu")
    variables, lat, lon, patch = (64, 192, 384, 8) if cuda else (4, 16, 32, 4)
    dim, depth, batch, hours, steps = (1024, 8, 8, 64, 150) if cuda else (32, 2, 2, 12, 4)
    lead = 1
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    archive = Archive(hours, variables, lat, lon, device)
    model = Forecaster(variables, lat, lon, patch, dim, depth).to(device)
    if cuda:
        for block in model.blocks:
            block.compile()
    opt = torch.optim.AdamW(model.parameters(), lr=2e-4, fused=True)
    weight = latitude_weight(lat, patch, lon, variables, device)
    log.info("%.1f M parameters", sum(p.numel() for p in model.parameters()) / 1e6)

    gen = torch.Generator().manual_seed(1)
    starts = torch.randint(0, hours - batch - lead, (steps,), generator=gen).tolist()
    history = []
    for step, start in enumerate(starts):
        x, y = archive.window(start, batch, lead)
        x, y = model.fold(x), model.fold(y)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            pred = model(x)
        error = F.mse_loss(pred.float(), (y - x).float(), reduction="none").mean(-1, keepdim=True)
        loss = (error * weight).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        history.append(loss.detach())
        if (step + 1) % 50 == 0:
            log.info("step %d loss %.4f", step + 1, torch.stack(history[-50:]).mean().item())
    log.info("loss %.4f -> %.4f", history[0].item(), history[-1].item())


if __name__ == "__main__":
    main()
