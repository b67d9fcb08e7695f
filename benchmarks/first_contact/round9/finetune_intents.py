"""Fine-tune a small encoder on customer messages: one of 64 intents per message."""

import math
import random
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset, Sampler

ON_GPU = torch.cuda.is_available()


@dataclass
class Config:
    vocab: int = 30528
    width: int = 768 if ON_GPU else 32
    layers: int = 10 if ON_GPU else 2
    heads: int = 12 if ON_GPU else 2
    max_length: int = 256 if ON_GPU else 64
    batch: int = 256 if ON_GPU else 8
    messages: int = 256 * 90 if ON_GPU else 48
    intents: int = 64
    lr: float = 3e-5
    workers: int = 6 if ON_GPU else 0


class Messages(Dataset):
    """Token ids of messages; most are a few dozen tokens long, a few fill the whole window."""

    def __init__(self, cfg: Config, seed: int = 0):
        g = torch.Generator().manual_seed(seed)
        spread = torch.randn(cfg.messages, generator=g) * 0.6 + math.log(cfg.max_length / 6)
        self.lengths = spread.exp().long().clamp(6, cfg.max_length).tolist()
        self.tokens = torch.randint(5, cfg.vocab, (sum(self.lengths),), generator=g)
        self.starts = [0]
        for n in self.lengths:
            self.starts.append(self.starts[-1] + n)
        self.labels = torch.randint(0, cfg.intents, (cfg.messages,), generator=g).tolist()

    def __len__(self):
        return len(self.lengths)

    def __getitem__(self, i):
        return self.tokens[self.starts[i] : self.starts[i + 1]], self.labels[i]


class LengthBuckets(Sampler):
    """Batches of messages of similar length, in random order."""

    def __init__(self, lengths, batch):
        order = sorted(range(len(lengths)), key=lengths.__getitem__)
        self.batches = [order[i : i + batch] for i in range(0, len(order), batch)]

    def __iter__(self):
        random.shuffle(self.batches)
        return iter(self.batches)

    def __len__(self):
        return len(self.batches)


class Collator:
    def __init__(self, cfg: Config, pad_id: int = 0):
        self.cfg, self.pad_id = cfg, pad_id

    def __call__(self, samples):
        width = self.cfg.max_length  # flaw: padded-batches
        ids = torch.full((len(samples), width), self.pad_id)
        for row, (tokens, _) in enumerate(samples):
            ids[row, : len(tokens)] = tokens
        return ids, torch.tensor([label for _, label in samples])


class Layer(nn.Module):
    def __init__(self, cfg: Config):
        super().__init__()
        self.heads = cfg.heads
        self.norm1, self.norm2 = nn.LayerNorm(cfg.width), nn.LayerNorm(cfg.width)
        self.qkv = nn.Linear(cfg.width, 3 * cfg.width)
        self.out = nn.Linear(cfg.width, cfg.width)
        self.mlp = nn.Sequential(
            nn.Linear(cfg.width, 4 * cfg.width), nn.GELU(), nn.Linear(4 * cfg.width, cfg.width)
        )

    def forward(self, x, mask):
        b, t, c = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
        return x + self.mlp(self.norm2(x))


class Encoder(nn.Module):
    def __init__(self, cfg: Config):
        super().__init__()
        self.tokens = nn.Embedding(cfg.vocab, cfg.width)
        self.positions = nn.Embedding(cfg.max_length, cfg.width)
        self.layers = nn.ModuleList(Layer(cfg) for _ in range(cfg.layers))
        self.norm = nn.LayerNorm(cfg.width)
        self.head = nn.Linear(cfg.width, cfg.intents)

    def forward(self, ids):
        mask = (ids != 0)[:, None, None, :]
        x = self.tokens(ids) + self.positions.weight[: ids.size(1)]
        for layer in self.layers:
            x = layer(x, mask)
        return self.head(self.norm(x[:, 0]))


class Trainer:
    def __init__(self, cfg: Config):
        self.cfg = cfg
        self.device = torch.device("cuda" if ON_GPU else "cpu")
        with self.device:
            self.model = Encoder(cfg)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=cfg.lr, fused=ON_GPU)

    def fit(self, loader, log_every=20):
        for step, (ids, labels) in enumerate(loader):
            ids = ids.to(self.device, non_blocking=True)
            labels = labels.to(self.device, non_blocking=True)
            with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=ON_GPU):
                loss = F.cross_entropy(self.model(ids), labels)
            loss.backward()
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)
            if step % log_every == log_every - 1:
                print(f"step {step + 1}: loss {loss.item():.4f}")
        return loss.item()


if __name__ == "__main__":
    random.seed(0)
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    cfg = Config()
    data = Messages(cfg)
    loader = DataLoader(
        data,
        batch_sampler=LengthBuckets(data.lengths, cfg.batch),
        collate_fn=Collator(cfg),
        num_workers=cfg.workers,
        persistent_workers=cfg.workers > 0,
        pin_memory=ON_GPU,
    )
    print(f"final loss {Trainer(cfg).fit(loader):.4f}")
