"""Masked-language-model pretraining of a small encoder; each sequence has the same number of masks."""
from dataclasses import dataclass, replace
from typing import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional as F


@dataclass(frozen=True)
class MLMConfig:
    vocab: int = 30_592
    length: int = 256
    masked: int = 40
    dim: int = 512
    layers: int = 6
    batch: int = 64
    steps: int = 130
    lr: float = 5e-4
    mask_id: int = 1

    def tiny(self) -> "MLMConfig":
        return replace(self, vocab=64, length=16, masked=4, dim=32, layers=1, batch=4, steps=4)


@dataclass
class MaskedBatch:
    ids: Tensor  # (batch, length), masked positions replaced
    position: Tensor  # (batch, masked)
    label: Tensor  # (batch, masked)


class EncoderBlock(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.heads = max(1, dim // 64)
        self.pre_a, self.pre_m = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.merge = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.wide, self.narrow = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        b, n, d = x.shape
        q, k, v = self.qkv(self.pre_a(x)).view(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        h = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, d)
        x = x + self.merge(h)
        return x + self.narrow(F.gelu(self.wide(self.pre_m(x))))


class MaskedLM(nn.Module):
    def __init__(self, cfg: MLMConfig):
        super().__init__()
        self.cfg = cfg
        self.words = nn.Embedding(cfg.vocab, cfg.dim)
        self.places = nn.Parameter(torch.randn(cfg.length, cfg.dim) * 0.02)
        self.blocks = nn.ModuleList(EncoderBlock(cfg.dim) for _ in range(cfg.layers))
        self.transform = nn.Sequential(nn.Linear(cfg.dim, cfg.dim), nn.GELU(), nn.LayerNorm(cfg.dim))
        self.head = nn.Linear(cfg.dim, cfg.vocab)
        self.register_buffer("row", torch.arange(cfg.batch)[:, None], persistent=False)

    def encode(self, ids: Tensor) -> Tensor:
        x = self.words(ids) + self.places
        for block in self.blocks:
            x = block(x)
        return x

    def forward(self, batch: MaskedBatch) -> Tensor:
        hidden = self.encode(batch.ids)
        scores = self.head(self.transform(hidden))  # flaw: unused-logits
        scores = scores[self.row, batch.position]  # flaw: unused-logits
        return F.cross_entropy(scores.flatten(0, 1), batch.label.flatten())


def batches(cfg: MLMConfig, device: torch.device) -> Iterator[MaskedBatch]:
    """Arithmetic progressions modulo the vocabulary, so that the context determines a masked word."""
    gen = torch.Generator(device).manual_seed(0)
    column = torch.arange(cfg.length, device=device)
    while True:
        start = torch.randint(cfg.vocab, (cfg.batch, 1), device=device, generator=gen)
        stride = torch.randint(1, 9, (cfg.batch, 1), device=device, generator=gen)
        ids = (start + stride * column) % cfg.vocab
        position = torch.rand(ids.shape, device=device, generator=gen).topk(cfg.masked, dim=1).indices
        label = ids.gather(1, position)
        yield MaskedBatch(ids.scatter(1, position, cfg.mask_id), position, label)


def train(cfg: MLMConfig, device: torch.device) -> list[float]:
    torch.manual_seed(0)
    model = MaskedLM(cfg).to(device)
    if device.type == "cuda":
        for block in model.blocks:
            block.compile()
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr, fused=True)
    warmup = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, 1.0, total_iters=20)
    losses = torch.zeros(cfg.steps, device=device)
    for step, batch in zip(range(cfg.steps), batches(cfg, device)):
        with torch.autocast(device.type, dtype=torch.bfloat16):
            loss = model(batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        warmup.step()
        losses[step] = loss.detach()
    return losses.tolist()


def main() -> None:
    cuda = torch.cuda.is_available()
    cfg = MLMConfig() if cuda else MLMConfig().tiny()
    losses = train(cfg, torch.device("cuda" if cuda else "cpu"))
    print(f"loss {losses[0]:.4f} -> {losses[-1]:.4f} (mean {sum(losses) / len(losses):.4f})")


if __name__ == "__main__":
    main()
