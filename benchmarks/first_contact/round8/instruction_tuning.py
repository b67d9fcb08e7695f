"""Supervised fine-tuning on (instruction, response) pairs."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

USE_CUDA = torch.cuda.is_available()
MAX_LENGTH = 1024 if USE_CUDA else 64
PAD, IGNORE = 0, -100


class InstructionDataset(Dataset):
    def __init__(self, size, vocab, seed=0):
        rng = np.random.default_rng(seed)
        scale = MAX_LENGTH / 1024
        prompt = rng.integers(30 * scale, 120 * scale, size)
        reply = np.clip(rng.lognormal(np.log(160 * scale), 0.4, size), 4, 560 * scale).astype(int)
        self.examples = [
            (torch.from_numpy(rng.integers(1, vocab, p + r)), int(p))
            for p, r in zip(prompt, reply, strict=True)
        ]

    def __len__(self):
        return len(self.examples)

    def __getitem__(self, index):
        return self.examples[index]


def collate(examples):
    longest = MAX_LENGTH  # flaw: padded-batches
    ids = torch.full((len(examples), longest), PAD)
    labels = torch.full((len(examples), longest), IGNORE)
    for row, (tokens, prompt) in enumerate(examples):
        ids[row, : len(tokens)] = tokens
        labels[row, prompt - 1 : len(tokens) - 1] = tokens[prompt:]
    return {"input_ids": ids, "labels": labels}


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.fc1, self.fc2 = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = (z.view(B, T, self.heads, -1).transpose(1, 2) for z in self.qkv(self.ln1(x)).chunk(3, -1))
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(a.transpose(1, 2).reshape(B, T, C))
        return x + self.fc2(F.gelu(self.fc1(self.ln2(x))))


class LanguageModel(nn.Module):
    def __init__(self, vocab, dim, heads, layers):
        super().__init__()
        self.wte = nn.Embedding(vocab, dim)
        self.wpe = nn.Embedding(MAX_LENGTH, dim)
        self.blocks = nn.Sequential(*[Block(dim, heads) for _ in range(layers)])
        self.ln = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, vocab, bias=False)

    def forward(self, input_ids):
        x = self.wte(input_ids) + self.wpe.weight[: input_ids.shape[1]]
        return self.head(self.ln(self.blocks(x)))


class Trainer:
    def __init__(self, model, dataset, batch_size, lr=2e-5):
        self.device = torch.device("cuda" if USE_CUDA else "cpu")
        self.model = model.to(self.device)
        self.loader = DataLoader(
            dataset,
            batch_size=batch_size,
            shuffle=True,
            drop_last=True,
            collate_fn=collate,
            num_workers=8 if USE_CUDA else 0,
            pin_memory=USE_CUDA,
            persistent_workers=USE_CUDA,
        )
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr, fused=USE_CUDA)
        self.history = []

    def training_step(self, batch):
        batch = {k: v.to(self.device, non_blocking=True) for k, v in batch.items()}
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=USE_CUDA):
            logits = self.model(batch["input_ids"])
            loss = F.cross_entropy(logits.flatten(0, 1), batch["labels"].flatten(), ignore_index=IGNORE)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    def fit(self, epochs):
        for epoch in range(epochs):
            total = torch.zeros((), device=self.device)
            for batch in self.loader:
                total += self.training_step(batch)
            self.history.append(total.item() / len(self.loader))
            print(f"epoch {epoch}: loss {self.history[-1]:.4f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    if USE_CUDA:
        model, data, batch = LanguageModel(32000, 768, 12, 12), InstructionDataset(960, 32000), 16
    else:
        model, data, batch = LanguageModel(200, 32, 2, 2), InstructionDataset(24, 200), 4
    Trainer(model, data, batch).fit(epochs=2)
