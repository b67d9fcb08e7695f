"""Supervised fine-tuning on (instruction, answer) pairs; the loss is on the answers."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

CUDA = torch.cuda.is_available()
IGNORE = -100


@dataclass
class TrainConfig:
    vocab: int = 65536 if CUDA else 256
    dim: int = 768 if CUDA else 32
    heads: int = 12 if CUDA else 2
    layers: int = 8 if CUDA else 2
    seq_len: int = 512 if CUDA else 32
    answer_len: int = 64 if CUDA else 8
    batch_size: int = 16 if CUDA else 2
    steps: int = 180 if CUDA else 5
    lr: float = 2e-5
    workers: int = 4 if CUDA else 0


class InstructionPairs(Dataset):
    """Prompts are cut to a common length, so the answer is always the tail of the sequence."""

    def __init__(self, cfg):
        self.cfg = cfg
        generator = torch.Generator().manual_seed(3)
        shape = (cfg.batch_size * 64, cfg.seq_len)
        self.ids = torch.randint(cfg.vocab, shape, generator=generator)

    def __len__(self):
        return self.cfg.batch_size * self.cfg.steps

    def __getitem__(self, index):
        ids = self.ids[index % len(self.ids)]
        labels = ids.clone()
        labels[: -self.cfg.answer_len] = IGNORE
        return {"input_ids": ids, "labels": labels}


class Block(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.heads = cfg.heads
        self.ln1, self.ln2 = nn.LayerNorm(cfg.dim), nn.LayerNorm(cfg.dim)
        self.qkv = nn.Linear(cfg.dim, 3 * cfg.dim)
        self.proj = nn.Linear(cfg.dim, cfg.dim)
        self.fc = nn.Linear(cfg.dim, 4 * cfg.dim)
        self.out = nn.Linear(4 * cfg.dim, cfg.dim)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, d))
        return x + self.out(F.gelu(self.fc(self.ln2(x))))


class CausalLM(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.embed = nn.Embedding(cfg.vocab, cfg.dim)
        self.pos = nn.Parameter(torch.randn(cfg.seq_len, cfg.dim) * 0.02)
        self.blocks = nn.ModuleList(Block(cfg) for _ in range(cfg.layers))
        self.norm = nn.LayerNorm(cfg.dim)
        self.lm_head = nn.Linear(cfg.dim, cfg.vocab, bias=False)
        self.lm_head.weight = self.embed.weight
        nn.init.normal_(self.embed.weight, std=0.02)

    def forward(self, input_ids, labels):
        x = self.embed(input_ids) + self.pos
        for block in self.blocks:
            x = block(x)
        logits = self.lm_head(self.norm(x))  # flaw: unused-logits
        shift_logits = logits[:, :-1].flatten(0, 1)  # flaw: unused-logits
        shift_labels = labels[:, 1:].flatten()  # flaw: unused-logits
        return F.cross_entropy(shift_logits, shift_labels, ignore_index=IGNORE)


class Trainer:
    def __init__(self, cfg, model, dataset):
        self.cfg = cfg
        self.device = torch.device("cuda" if CUDA else "cpu")
        self.model = model.to(self.device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=cfg.lr, fused=True)
        self.loader = DataLoader(
            dataset,
            batch_size=cfg.batch_size,
            num_workers=cfg.workers,
            pin_memory=CUDA,
            persistent_workers=cfg.workers > 0,
            drop_last=True,
        )

    def training_step(self, batch):
        batch = {k: v.to(self.device, non_blocking=True) for k, v in batch.items()}
        with torch.autocast(self.device.type, dtype=torch.bfloat16):
            loss = self.model(**batch)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    def fit(self):
        total = torch.zeros((), device=self.device)
        for step, batch in enumerate(self.loader, 1):
            total += self.training_step(batch)
            if step % 30 == 0 or step == self.cfg.steps:
                print(f"step {step}: mean loss {total.item() / step:.4f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    config = TrainConfig()
    Trainer(config, CausalLM(config), InstructionPairs(config)).fit()
