"""A small GPT, compiled, in bf16 autocast, with fused AdamW and packed tokens from workers."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

VOCABULARY, WIDTH, HEADS, LAYERS, LENGTH, BATCH = 16384, 1024, 16, 4, 1024, 16


class Packed(IterableDataset):
    """Windows of one long run of tokens, whole batches at a time."""

    def __iter__(self):
        tokens = np.random.randint(0, VOCABULARY, 4_000_000, dtype=np.uint16)
        while True:
            starts = np.random.randint(0, len(tokens) - LENGTH - 1, BATCH)
            yield torch.from_numpy(np.stack([tokens[s : s + LENGTH + 1] for s in starts]).astype(np.int64))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)
        self.up = nn.Linear(WIDTH, 4 * WIDTH, bias=False)
        self.down = nn.Linear(4 * WIDTH, WIDTH, bias=False)

    def forward(self, x):
        b, n, _ = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, n, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)  # kernel: flash
        x = x + self.out(y.transpose(1, 2).reshape(b, n, WIDTH))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm, self.head = nn.RMSNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens, targets):
        x = self.words(tokens) + self.places.weight
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), targets.flatten())


torch.set_float32_matmul_precision("high")
model = GPT().to("cuda")
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), fused=True)
compiled = torch.compile(model)
loader = DataLoader(Packed(), batch_size=None, num_workers=2, pin_memory=True, prefetch_factor=4)
for step, window in enumerate(loader):
    lr = 3e-4 * min(1, (step + 1) / 100) * 0.5 * (1 + math.cos(math.pi * min(step / 2000, 1)))
    for group in optimizer.param_groups:
        group["lr"] = lr
    window = window.to("cuda", non_blocking=True)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = compiled(window[:, :-1].contiguous(), window[:, 1:].contiguous())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    if step % 200 == 0:
        print(step, loss.item())
    if step == 2000:
        break
