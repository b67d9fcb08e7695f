"""Masked autoencoder pre-training (encoder sees a quarter of the patches)."""

import time

import torch
import torch.nn.functional as F
from torch import nn


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        x = F.scaled_dot_product_attention(q, k, v)
        return self.proj(x.transpose(1, 2).reshape(b, n, d))


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = Attention(dim, heads)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class MAE(nn.Module):
    def __init__(self, size=224, patch=16, dim=768, depth=8, dec_dim=512, dec_depth=2, mask_ratio=0.75):
        super().__init__()
        self.patch, self.n = patch, (size // patch) ** 2
        self.keep = int(self.n * (1 - mask_ratio))
        self.embed = nn.Linear(3 * patch**2, dim)
        self.pos = nn.Parameter(torch.randn(1, self.n, dim) * 0.02)
        self.encoder = nn.Sequential(*[Block(dim, dim // 64) for _ in range(depth)], nn.LayerNorm(dim))
        self.bridge = nn.Linear(dim, dec_dim)
        self.mask_token = nn.Parameter(torch.zeros(1, 1, dec_dim))
        self.dec_pos = nn.Parameter(torch.randn(1, self.n, dec_dim) * 0.02)
        self.decoder = nn.Sequential(*[Block(dec_dim, dec_dim // 64) for _ in range(dec_depth)], nn.LayerNorm(dec_dim))
        self.head = nn.Linear(dec_dim, 3 * patch**2)

    def patchify(self, images):
        b, c, h, w = images.shape
        p = self.patch
        x = images.view(b, c, h // p, p, w // p, p)
        return x.permute(0, 2, 4, 3, 5, 1).reshape(b, self.n, p * p * c)

    def forward(self, images):
        target = self.patchify(images)
        order = torch.rand(target.shape[:2], device=images.device).argsort(dim=1)
        keep, drop = order[:, : self.keep, None], order[:, self.keep :, None]
        x = torch.take_along_dim(target, keep, 1)
        x = self.embed(x) + torch.take_along_dim(self.pos, keep, 1)
        x = self.bridge(self.encoder(x))
        y = torch.cat([x, self.mask_token.expand(len(x), drop.shape[1], -1).to(x.dtype)], dim=1)
        y = y + torch.take_along_dim(self.dec_pos, order[:, :, None], 1)
        y = self.head(self.decoder(y)[:, self.keep :])
        return F.mse_loss(y.float(), torch.take_along_dim(target, drop, 1))


def main():
    torch.manual_seed(0)
    cuda = torch.cuda.is_available()
    device = torch.device("cuda" if cuda else "cpu")
    if cuda:
        model, size, count, batch, steps = MAE(), 224, 2048, 128, 70
    else:
        model, size, count, batch, steps = MAE(64, 16, 64, 1, 64, 1), 64, 8, 2, 3
    model = model.to(device)
    decay = [p for p in model.parameters() if p.ndim > 1]
    rest = [p for p in model.parameters() if p.ndim <= 1]
    optimizer = torch.optim.AdamW(
        [{"params": decay, "weight_decay": 0.05}, {"params": rest, "weight_decay": 0.0}],
        lr=1.5e-4,
        betas=(0.9, 0.95),
        fused=True,
    )
    images = torch.randint(0, 256, (count, 3, size, size), dtype=torch.uint8, device=device)
    start = time.time()
    for step in range(steps):
        batch_images = images[torch.randint(0, count, (batch,), device=device)]
        x = batch_images.float().sub_(120).div_(60)
        loss = model(x)  # flaw: fp32-matmul
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 35 == 0:
            print(f"[{step}/{steps}] loss {loss.item():.4f} ({time.time() - start:.1f} s)")


if __name__ == "__main__":
    main()
