"""Encode a passage collection into vectors for dense retrieval, then check a few queries."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset, Subset

USE_CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if USE_CUDA else "cpu")
DTYPE = torch.bfloat16 if USE_CUDA else torch.float32
MAX_LEN = 512 if USE_CUDA else 64
HIDDEN, LAYERS, HEADS = (768, 12, 12) if USE_CUDA else (32, 2, 2)
VOCAB = 30528
PASSAGES = 14000 if USE_CUDA else 64
BATCH = 64 if USE_CUDA else 8
PAD = 0


class PassageDataset(Dataset):
    """Tokenised passages; most are a paragraph, few reach the maximum length."""

    def __init__(self, count, seed=0):
        rng = np.random.default_rng(seed)
        lengths = rng.lognormal(np.log(MAX_LEN / 6), 0.6, size=count).astype(int)
        self.lengths = np.clip(lengths, 6, MAX_LEN)
        self.offsets = np.concatenate([[0], np.cumsum(self.lengths)])
        self.tokens = rng.integers(1, VOCAB, size=self.offsets[-1])

    def __len__(self):
        return len(self.lengths)

    def __getitem__(self, i):
        return i, torch.from_numpy(self.tokens[self.offsets[i] : self.offsets[i + 1]])


def collate(samples):
    numbers = torch.tensor([n for n, _ in samples])
    longest = max(len(tokens) for _, tokens in samples)
    ids = torch.full((len(samples), -(-longest // 8) * 8), PAD)
    for row, (_, tokens) in enumerate(samples):
        ids[row, : len(tokens)] = tokens
    return numbers, ids


class EncoderLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(HIDDEN, 3 * HIDDEN)
        self.out = nn.Linear(HIDDEN, HIDDEN)
        self.up = nn.Linear(HIDDEN, 4 * HIDDEN)
        self.down = nn.Linear(4 * HIDDEN, HIDDEN)
        self.norm1, self.norm2 = nn.LayerNorm(HIDDEN), nn.LayerNorm(HIDDEN)

    def forward(self, x, mask):
        b, t, _ = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = self.norm1(x + self.out(y.transpose(1, 2).reshape(b, t, HIDDEN)))
        return self.norm2(x + self.down(F.gelu(self.up(x))))


class PassageEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.word = nn.Embedding(VOCAB, HIDDEN, padding_idx=PAD)
        self.position = nn.Embedding(MAX_LEN, HIDDEN)
        self.norm = nn.LayerNorm(HIDDEN)
        self.layers = nn.ModuleList(EncoderLayer() for _ in range(LAYERS))

    def forward(self, ids):
        keep = ids != PAD
        x = self.norm(self.word(ids) + self.position.weight[: ids.size(1)])
        mask = keep[:, None, None, :]
        for layer in self.layers:
            x = layer(x, mask)
        return F.normalize(x[:, 0].float(), dim=-1)


def make_loader(dataset):
    ordered = Subset(dataset, np.argsort(-dataset.lengths).tolist())
    workers = 4 if USE_CUDA else 0
    return DataLoader(
        ordered,
        batch_size=BATCH,
        collate_fn=collate,
        num_workers=workers,
        pin_memory=USE_CUDA,
        persistent_workers=workers > 0,
    )


@torch.inference_mode()
def encode(model, loader, count):
    vectors = torch.empty(count, HIDDEN, device=DEVICE)
    for numbers, ids in loader:
        ids = ids.to(DEVICE, non_blocking=True)
        vectors[numbers.to(DEVICE, non_blocking=True)] = model(ids)
    return vectors


def main():
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    dataset = PassageDataset(PASSAGES)
    model = PassageEncoder().to(DEVICE, DTYPE).eval()
    vectors = encode(model, make_loader(dataset), len(dataset))
    scores = vectors[:8] @ vectors.T
    best = scores.topk(3, dim=1)
    print("nearest", best.indices[0].tolist(), "mean score", round(best.values.mean().item(), 4))


if __name__ == "__main__":
    main()
