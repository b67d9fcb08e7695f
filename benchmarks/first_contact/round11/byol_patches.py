"""BYOL-style pretraining of a deep, narrow patch transformer (no negatives, momentum target)."""
import copy
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

HAS_CUDA = torch.cuda.is_available()


@dataclass
class BYOLConfig:
    dim: int = 256 if HAS_CUDA else 16
    depth: int = 32 if HAS_CUDA else 2
    batch: int = 128 if HAS_CUDA else 4
    patches: int = 64 if HAS_CUDA else 4
    patch_values: int = 192 if HAS_CUDA else 12
    projection: int = 256 if HAS_CUDA else 8
    momentum: float = 0.99
    steps: int = 150 if HAS_CUDA else 4
    device: str = "cuda" if HAS_CUDA else "cpu"


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.heads = max(1, dim // 64)
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.fc1, self.fc2 = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        x = x + self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, d))
        return x + self.fc2(F.gelu(self.fc1(self.norm2(x))))


class Backbone(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.embed = nn.Linear(cfg.patch_values, cfg.dim)
        self.pos = nn.Parameter(torch.randn(cfg.patches, cfg.dim) * 0.02)
        self.blocks = nn.ModuleList(Block(cfg.dim) for _ in range(cfg.depth))
        self.project = mlp(cfg.dim, 4 * cfg.dim, cfg.projection)

    def forward(self, x):
        x = self.embed(x) + self.pos
        for block in self.blocks:
            x = block(x)
        return self.project(x.mean(1))


def mlp(inputs, hidden, outputs):
    first, last = nn.Linear(inputs, hidden), nn.Linear(hidden, outputs)
    return nn.Sequential(first, nn.LayerNorm(hidden), nn.GELU(), last)


class BYOL(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.online = Backbone(cfg)
        self.predict = mlp(cfg.projection, 4 * cfg.projection, cfg.projection)
        self.target = copy.deepcopy(self.online).requires_grad_(False)
        if HAS_CUDA:
            for block in [*self.online.blocks, *self.target.blocks]:
                block.compile()

    def forward(self, views):
        """views: (2 * batch, patches, values), the two views of an image one batch apart."""
        guess = F.normalize(self.predict(self.online(views)).float(), dim=-1)
        with torch.no_grad():
            truth = F.normalize(self.target(views).float(), dim=-1).roll(self.cfg.batch, dims=0)
        return 2 - 2 * (guess * truth).sum(-1).mean()

    @torch.no_grad()
    def update_target(self):
        m = self.cfg.momentum
        for slow, fast in zip(self.target.parameters(), self.online.parameters()):  # flaw: parameter-loop
            slow.data = m * slow.data + (1 - m) * fast.data  # flaw: parameter-loop


class TwoViews:
    """Random images as patch sequences; a view masks patches and adds noise."""

    def __init__(self, cfg):
        self.cfg = cfg
        self.gen = torch.Generator(cfg.device).manual_seed(1)
        shape = (8 * cfg.batch, cfg.patches, cfg.patch_values)
        self.images = torch.randn(shape, device=cfg.device, generator=self.gen).to(torch.bfloat16)

    def next(self):
        pick = torch.randint(len(self.images), (self.cfg.batch,), device=self.cfg.device, generator=self.gen)
        both = self.images[pick].repeat(2, 1, 1)
        keep = torch.rand(both.shape[:2], device=self.cfg.device, generator=self.gen) > 0.3
        noise = torch.randn(both.shape, device=self.cfg.device, dtype=both.dtype, generator=self.gen)
        return torch.where(keep[..., None], both, 0.3 * noise)


def main():
    cfg = BYOLConfig()
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    model = BYOL(cfg).to(cfg.device)
    trained = [*model.online.parameters(), *model.predict.parameters()]
    opt = torch.optim.AdamW(trained, lr=1e-3, weight_decay=0.05, fused=True)
    data, losses = TwoViews(cfg), torch.zeros(cfg.steps, device=cfg.device)
    for step in range(cfg.steps):
        with torch.autocast(cfg.device, dtype=torch.bfloat16):
            loss = model(data.next())
        opt.zero_grad()
        loss.backward()
        opt.step()
        model.update_target()
        losses[step] = loss.detach()
    pairs = zip(model.online.parameters(), model.target.parameters())
    drift = sum((a - b).square().sum() for a, b in pairs).sqrt().item()
    print(f"loss {losses[0].item():.4f} -> {losses[-1].item():.4f}, distance to target {drift:.3f}")


if __name__ == "__main__":
    main()
