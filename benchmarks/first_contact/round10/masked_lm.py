"""BERT-style masked language modelling with a fixed number of masked positions per sequence."""

from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

CUDA = torch.cuda.is_available()


@dataclass
class Config:
    vocab: int = 30528 if CUDA else 128
    dim: int = 768 if CUDA else 32
    heads: int = 12 if CUDA else 2
    layers: int = 8 if CUDA else 2
    length: int = 512 if CUDA else 32
    masked: int = 80 if CUDA else 8
    batch: int = 32 if CUDA else 2
    steps: int = 130 if CUDA else 5
    workers: int = 6 if CUDA else 0
    mask_token: int = 3


class MaskedText(Dataset):
    def __init__(self, cfg):
        self.cfg = cfg
        self.text = torch.randint(5, cfg.vocab, (cfg.batch * 32, cfg.length))

    def __len__(self):
        return self.cfg.batch * self.cfg.steps

    def __getitem__(self, index):
        ids = self.text[index % len(self.text)].clone()
        where = torch.randperm(self.cfg.length)[: self.cfg.masked]
        labels = ids[where]
        ids[where] = self.cfg.mask_token
        return ids, where, labels


class Block(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.heads = cfg.heads
        self.norm1, self.norm2 = nn.LayerNorm(cfg.dim), nn.LayerNorm(cfg.dim)
        self.qkv, self.proj = nn.Linear(cfg.dim, 3 * cfg.dim), nn.Linear(cfg.dim, cfg.dim)
        self.up, self.down = nn.Linear(cfg.dim, 4 * cfg.dim), nn.Linear(4 * cfg.dim, cfg.dim)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, d))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class MaskedLM(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.embed = nn.Embedding(cfg.vocab, cfg.dim)
        self.position = nn.Parameter(torch.randn(cfg.length, cfg.dim) * 0.02)
        self.blocks = nn.Sequential(*[Block(cfg) for _ in range(cfg.layers)])
        self.norm = nn.LayerNorm(cfg.dim)
        self.decoder = nn.Linear(cfg.dim, cfg.vocab)

    def forward(self, ids, where):
        x = self.blocks(self.embed(ids) + self.position)
        chosen = x.gather(1, where[:, :, None].expand(-1, -1, x.shape[-1]))
        return self.decoder(self.norm(chosen))


def main():
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    cfg = Config()
    device = torch.device("cuda" if CUDA else "cpu")
    model = MaskedLM(cfg).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    loader = DataLoader(
        MaskedText(cfg),
        batch_size=cfg.batch,
        num_workers=cfg.workers,
        pin_memory=CUDA,
        persistent_workers=cfg.workers > 0,
    )
    for step, batch in enumerate(loader):
        ids, where, labels = (t.to(device, non_blocking=True) for t in batch)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            logits = model(ids, where)
            loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 40 == 0 or step == cfg.steps - 1:
            print(f"step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
