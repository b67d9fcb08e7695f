"""Masked autoencoder pre-training of a vision transformer; only visible patches pass the encoder."""

from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class MAEConfig:
    image: int = 224
    patch: int = 16
    dim: int = 512
    depth: int = 10
    decoder_dim: int = 256
    decoder_depth: int = 2
    head_dim: int = 64
    keep: float = 0.5
    batch: int = 320
    steps: int = 100


class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        variance = x.pow(2).mean(-1, keepdim=True)  # flaw: hand-written-norm
        x = x * torch.rsqrt(variance + self.eps)  # flaw: hand-written-norm
        return x * self.weight  # flaw: hand-written-norm


class Layer(nn.Module):
    def __init__(self, dim, head_dim):
        super().__init__()
        self.heads = dim // head_dim
        self.attn_norm, self.mlp_norm = RMSNorm(dim), RMSNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.out = nn.Linear(dim, dim, bias=False)
        self.fc1, self.fc2 = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(self.attn_norm(x)).view(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v)
        x = x + self.out(a.transpose(1, 2).reshape(b, n, d))
        return x + self.fc2(F.gelu(self.fc1(self.mlp_norm(x))))


class MaskedAutoencoder(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.cells = (cfg.image // cfg.patch) ** 2
        self.visible = int(self.cells * cfg.keep)
        values = 3 * cfg.patch**2
        self.embed = nn.Linear(values, cfg.dim)
        self.encoder_position = nn.Parameter(torch.randn(1, self.cells, cfg.dim) * 0.02)
        self.encoder = nn.ModuleList(Layer(cfg.dim, cfg.head_dim) for _ in range(cfg.depth))
        self.encoder_norm = RMSNorm(cfg.dim)
        self.bridge = nn.Linear(cfg.dim, cfg.decoder_dim)
        self.mask_token = nn.Parameter(torch.zeros(1, 1, cfg.decoder_dim))
        self.decoder_position = nn.Parameter(torch.randn(1, self.cells, cfg.decoder_dim) * 0.02)
        self.decoder = nn.ModuleList(Layer(cfg.decoder_dim, cfg.head_dim) for _ in range(cfg.decoder_depth))
        self.head = nn.Sequential(RMSNorm(cfg.decoder_dim), nn.Linear(cfg.decoder_dim, values))

    def forward(self, patches):
        b = len(patches)
        order = torch.rand(b, self.cells, device=patches.device).argsort(1)
        keep, hidden = order[:, : self.visible, None], order[:, self.visible :, None]
        visible = patches.gather(1, keep.expand(-1, -1, patches.shape[-1]))
        position = self.encoder_position.expand(b, -1, -1).gather(1, keep.expand(-1, -1, self.cfg.dim))
        x = self.embed(visible) + position
        for layer in self.encoder:
            x = layer(x)
        x = self.bridge(self.encoder_norm(x))
        full = self.mask_token.to(x.dtype).expand(b, self.cells, -1)
        full = full.scatter(1, keep.expand(-1, -1, self.cfg.decoder_dim), x) + self.decoder_position
        for layer in self.decoder:
            full = layer(full)
        index = hidden.expand(-1, -1, self.cfg.decoder_dim)
        predicted = self.head(full.gather(1, index))
        target = patches.gather(1, hidden.expand(-1, -1, patches.shape[-1]))
        return F.mse_loss(predicted.float(), target.float())


def patchify(images, p):
    b, c, h, w = images.shape
    x = images.view(b, c, h // p, p, w // p, p).permute(0, 2, 4, 3, 5, 1)
    return x.reshape(b, (h // p) * (w // p), p * p * c)


def main():
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    cuda = torch.cuda.is_available()
    device = torch.device("cuda" if cuda else "cpu")
    cfg = MAEConfig() if cuda else MAEConfig(32, 8, 32, 2, 16, 1, 16, 0.5, 4, 3)
    model = MaskedAutoencoder(cfg).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1.5e-4, betas=(0.9, 0.95), weight_decay=0.05, fused=cuda)
    images = torch.randint(0, 256, (1280 if cuda else 8, 3, cfg.image, cfg.image), dtype=torch.uint8, device=device)
    patches = patchify(images, cfg.patch)
    curve = torch.zeros(cfg.steps, device=device)
    for step in range(cfg.steps):
        rows = torch.randint(0, len(patches), (cfg.batch,), device=device)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            loss = model(patches[rows].to(torch.bfloat16).div_(255))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        curve[step] = loss.detach()
    print("first", curve[0].item(), "last", curve[-10:].mean().item())


if __name__ == "__main__":
    main()
