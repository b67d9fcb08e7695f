"""Instance discrimination with a memory bank of all training images (non-parametric softmax)."""
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import nn


def on_gpu(yes, no):
    return field(default=yes if torch.cuda.is_available() else no)


@dataclass
class Settings:
    images: int = on_gpu(131_072, 128)
    batch: int = on_gpu(2048, 16)
    dim: int = on_gpu(256, 16)
    layers: int = on_gpu(4, 1)
    feature: int = on_gpu(512, 16)
    steps: int = on_gpu(110, 4)
    temperature: float = 0.1
    momentum: float = 0.5
    matmul_precision: str = "high"
    device: str = on_gpu("cuda", "cpu")


class Layer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.heads = max(1, dim // 64)
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.o = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        x = x + self.o(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, d))
        return x + self.mlp(self.n2(x))


class Encoder(nn.Module):
    """Patch transformer for 32 x 32 images."""

    def __init__(self, cfg):
        super().__init__()
        self.embed = nn.Linear(3 * 16, cfg.dim)
        self.pos = nn.Parameter(0.02 * torch.randn(64, cfg.dim))
        self.layers = nn.ModuleList(Layer(cfg.dim) for _ in range(cfg.layers))
        self.project = nn.Sequential(nn.LayerNorm(cfg.dim), nn.Linear(cfg.dim, cfg.feature))

    def forward(self, images):
        b = images.shape[0]
        x = images.view(b, 3, 8, 4, 8, 4).permute(0, 2, 4, 1, 3, 5).reshape(b, 64, 48)
        x = self.embed(x) + self.pos
        for layer in self.layers:
            x = layer(x)
        return self.project(x.mean(1))


class Bank:
    """One unit vector for each training image, moved towards the newest feature."""

    def __init__(self, cfg, generator):
        table = torch.randn(cfg.images, cfg.feature, device=cfg.device, generator=generator)
        self.table = F.normalize(table, dim=1)
        self.momentum, self.temperature = cfg.momentum, cfg.temperature

    def loss(self, features, index):
        # full precision: the softmax over all images is sensitive to small errors of the similarity
        logits = (features / self.temperature) @ self.table.t()
        return F.cross_entropy(logits, index)

    @torch.no_grad()
    def update(self, features, index):
        mixed = torch.lerp(features, self.table[index], self.momentum)
        self.table.index_copy_(0, index, F.normalize(mixed, dim=1))


def augment(images, generator):
    flip = torch.rand(images.shape[0], 1, 1, 1, device=images.device, generator=generator) < 0.5
    return torch.where(flip, images.flip(-1), images)


def train(cfg):
    torch.set_float32_matmul_precision(cfg.matmul_precision)
    torch.manual_seed(0)
    gen = torch.Generator(cfg.device).manual_seed(1)
    images = torch.randn(cfg.images // 8, 3, 32, 32, device=cfg.device, generator=gen).to(torch.bfloat16)
    encoder = Encoder(cfg).to(cfg.device)
    if cfg.device == "cuda":
        for layer in encoder.layers:
            layer.compile()
    bank = Bank(cfg, gen)
    opt = torch.optim.SGD(encoder.parameters(), lr=0.03, momentum=0.9, weight_decay=5e-4, fused=True)
    record = torch.zeros(cfg.steps, device=cfg.device)
    for step in range(cfg.steps):
        index = torch.randperm(len(images), device=cfg.device, generator=gen)[:cfg.batch]
        batch = augment(images[index], gen)
        with torch.autocast(cfg.device, dtype=torch.bfloat16):
            features = encoder(batch)
        features = F.normalize(features.float(), dim=1)
        loss = bank.loss(features, index)
        opt.zero_grad()
        loss.backward()
        opt.step()
        bank.update(features.detach(), index)
        record[step] = loss.detach()
    return record.tolist()


if __name__ == "__main__":
    curve = train(Settings())
    print("first", round(curve[0], 4), "last", round(curve[-1], 4))
