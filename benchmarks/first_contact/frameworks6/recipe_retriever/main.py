"""Bi-encoder for retrieval, trained with in-batch negatives in the style of sentence-transformers."""

import os
import time
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset, Sampler
from transformers import XLMRobertaConfig, XLMRobertaModel, get_linear_schedule_with_warmup

SMALL = os.environ.get("SMALL") == "1"


@dataclass
class Settings:
    vocab_size: int = 512 if SMALL else 32000
    hidden_size: int = 64 if SMALL else 768
    layers: int = 2 if SMALL else 12
    heads: int = 4 if SMALL else 12
    pairs: int = 2000 if SMALL else 131072
    batch_size: int = 8 if SMALL else 160
    max_seq_length: int = 32 if SMALL else 128
    epochs: int = 4
    scale: float = 20.0
    lr: float = 2e-5
    workers: int = 1 if SMALL else 6


class InputExamples(Dataset):
    def __init__(self, cfg, seed=0):
        rng = np.random.default_rng(seed)
        anchors = rng.integers(cfg.max_seq_length * 5 // 8, cfg.max_seq_length - 1, cfg.pairs)
        self.lengths = np.stack([anchors, anchors + rng.integers(0, 3, cfg.pairs)], 1)
        self.offsets = rng.integers(0, 1 << 20, (cfg.pairs, 2))
        self.text = rng.integers(4, cfg.vocab_size, (1 << 20) + 512)

    def __len__(self):
        return len(self.lengths)

    def __getitem__(self, i):
        return [self.text[o : o + n] for o, n in zip(self.offsets[i], self.lengths[i])]


class LengthSortedBatches(Sampler):
    """Pairs of similar total length share a batch; the batches come in random order."""

    def __init__(self, lengths, batch_size, seed=0):
        self.order = np.lexsort((lengths.min(1), lengths.max(1)))
        self.batch_size, self.rng = batch_size, np.random.default_rng(seed)

    def __len__(self):
        return len(self.order) // self.batch_size

    def __iter__(self):
        for b in self.rng.permutation(len(self)):
            yield self.order[b * self.batch_size : (b + 1) * self.batch_size].tolist()


def smart_batching_collate(examples):
    texts = [pair[0] for pair in examples] + [pair[1] for pair in examples]
    width = -(-max(len(t) for t in texts) // 8) * 8
    ids = np.ones((len(texts), width), dtype=np.int64)
    for row, text in zip(ids, texts):
        row[: len(text)] = text
    ids = torch.from_numpy(ids)
    return {"input_ids": ids, "attention_mask": (ids != 1).long()}


class SentenceEncoder(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        config = XLMRobertaConfig(
            vocab_size=cfg.vocab_size,
            hidden_size=cfg.hidden_size,
            num_hidden_layers=cfg.layers,
            num_attention_heads=cfg.heads,
            intermediate_size=4 * cfg.hidden_size,
            max_position_embeddings=cfg.max_seq_length + 2,
            type_vocab_size=1,
        )
        self.transformer = XLMRobertaModel(config, add_pooling_layer=False)

    def forward(self, features):
        states = self.transformer(**features).last_hidden_state
        mask = features["attention_mask"].unsqueeze(-1).to(states.dtype)
        return F.normalize((states * mask).sum(1) / mask.sum(1), dim=-1)


class MultipleNegativesRankingLoss(nn.Module):
    def __init__(self, model, scale):
        super().__init__()
        self.model, self.scale = model, scale

    def forward(self, features):
        anchors, positives = self.model(features).chunk(2)
        scores = anchors @ positives.T * self.scale
        return F.cross_entropy(scores, torch.arange(len(scores), device=scores.device))


def fit(objective, loader, cfg, device):
    optimizer = torch.optim.AdamW(objective.parameters(), lr=cfg.lr, fused=True)
    total = cfg.epochs * len(loader)
    scheduler = get_linear_schedule_with_warmup(optimizer, total // 10, total)
    step, begin = 0, time.time()
    for epoch in range(cfg.epochs):
        objective.train()
        for features in loader:
            features = {k: v.to(device, non_blocking=True) for k, v in features.items()}
            with torch.autocast(device.type, dtype=torch.bfloat16):
                loss = objective(features)
            loss.backward()
            nn.utils.clip_grad_norm_(objective.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
            step += 1
            if step % 100 == 0:
                print(f"{epoch} {step}/{total} loss {loss.item():.3f} {time.time() - begin:.0f} s", flush=True)


def main():
    cfg = Settings()
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    examples = InputExamples(cfg)
    loader = DataLoader(
        examples,
        batch_sampler=LengthSortedBatches(examples.lengths, cfg.batch_size),
        collate_fn=smart_batching_collate,
        num_workers=cfg.workers,
        persistent_workers=True,
        pin_memory=device.type == "cuda",
    )
    model = SentenceEncoder(cfg).to(device)
    fit(MultipleNegativesRankingLoss(model, cfg.scale), loader, cfg, device)


if __name__ == "__main__":
    main()
