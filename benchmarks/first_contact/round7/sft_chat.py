"""Supervised fine-tuning on chat transcripts: prompt tokens are not scored."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

GPU = torch.cuda.is_available()
MAX_LEN = 1024 if GPU else 64
VOCAB = 16384 if GPU else 200
DIM, DEPTH, HEADS = (768, 6, 12) if GPU else (32, 2, 2)
BATCH = 16 if GPU else 4
STEPS = 120 if GPU else 4
PAD, IGNORE = 0, -100


class ChatDataset(Dataset):
    """Token ids of conversations, kept as one flat array with offsets."""

    def __init__(self, n, seed=0):
        rng = np.random.default_rng(seed)
        lengths = rng.integers(MAX_LEN // 16, MAX_LEN * 7 // 16, size=n)
        self.offsets = np.concatenate([[0], np.cumsum(lengths)])
        self.tokens = rng.integers(1, VOCAB, size=self.offsets[-1], dtype=np.int64)
        self.prompt = (lengths * rng.uniform(0.1, 0.5, size=n)).astype(np.int64)

    def __len__(self):
        return len(self.prompt)

    def __getitem__(self, i):
        ids = torch.from_numpy(self.tokens[self.offsets[i] : self.offsets[i + 1]])
        labels = ids.clone()
        labels[: self.prompt[i]] = IGNORE
        return ids, labels


def collate(samples):
    width = MAX_LEN  # flaw: padded-batches
    ids = torch.full((len(samples), width), PAD)
    labels = torch.full((len(samples), width), IGNORE)
    for row, (tokens, target) in enumerate(samples):
        ids[row, : len(tokens)] = tokens
        labels[row, : len(target)] = target
    return ids, labels


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.wqkv = nn.Linear(DIM, 3 * DIM, bias=False)
        self.wo = nn.Linear(DIM, DIM, bias=False)
        self.ff = nn.Sequential(nn.Linear(DIM, 4 * DIM), nn.GELU(), nn.Linear(4 * DIM, DIM))

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = self.wqkv(self.n1(x)).view(b, t, 3, HEADS, DIM // HEADS).permute(2, 0, 3, 1, 4)
        h = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.wo(h.transpose(1, 2).reshape(b, t, DIM))
        return x + self.ff(self.n2(x))


class ChatModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte = nn.Embedding(VOCAB, DIM)
        self.wpe = nn.Embedding(MAX_LEN, DIM)
        self.blocks = nn.ModuleList(Block() for _ in range(DEPTH))
        self.norm = nn.LayerNorm(DIM)
        self.lm_head = nn.Linear(DIM, VOCAB, bias=False)

    def forward(self, ids):
        x = self.wte(ids) + self.wpe.weight[: ids.size(1)]
        for block in self.blocks:
            x = block(x)
        return self.lm_head(self.norm(x))


def main():
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    device = torch.device("cuda" if GPU else "cpu")
    data = ChatDataset(BATCH * STEPS)
    workers = 8 if GPU else 0
    loader = DataLoader(
        data,
        batch_size=BATCH,
        shuffle=True,
        drop_last=True,
        collate_fn=collate,
        num_workers=workers,
        pin_memory=GPU,
        persistent_workers=workers > 0,
    )
    model = ChatModel().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=GPU)
    for step, (ids, labels) in enumerate(loader):
        ids = ids.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            logits = model(ids)
            loss = F.cross_entropy(
                logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), ignore_index=IGNORE
            )
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if step % 30 == 0:
            print(step, f"{loss.item():.4f}")
    print("last", f"{loss.item():.4f}")


if __name__ == "__main__":
    main()
