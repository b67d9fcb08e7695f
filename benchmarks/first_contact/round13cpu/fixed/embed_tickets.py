# Embeds a backlog of support tickets with a small encoder and groups them by similarity.
import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pad_sequence

VOCAB, WIDTH, HEADS, DEPTH, BATCH = 4000, 128, 4, 3, 16


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.proj = nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x, mask):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + self.proj(a.transpose(1, 2).reshape(b, t, WIDTH))
        return x + self.down(F.gelu(self.up(self.n2(x))))


class TicketEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCAB, WIDTH, padding_idx=0)
        self.blocks = nn.ModuleList(Block() for _ in range(DEPTH))
        self.final = nn.LayerNorm(WIDTH)

    def forward(self, ids):
        valid = ids.ne(0)
        mask = valid[:, None, None, :]
        x = self.tokens(ids)
        for block in self.blocks:
            x = block(x, mask)
        weight = valid.unsqueeze(-1).to(x.dtype)
        pooled = (self.final(x) * weight).sum(1) / weight.sum(1)
        return F.normalize(pooled, dim=-1)


def backlog(count, seed=21):
    rng = np.random.default_rng(seed)
    lengths = np.clip(np.exp(rng.normal(3.4, 0.9, size=count)), 6, 320).astype(int)
    return [torch.from_numpy(rng.integers(1, VOCAB, size=n)) for n in lengths]


def batches(tickets):
    order = sorted(range(len(tickets)), key=lambda i: len(tickets[i]))
    for at in range(0, len(order), BATCH):
        picked = order[at:at + BATCH]
        yield picked, pad_sequence([tickets[i] for i in picked], batch_first=True)


torch.manual_seed(0)
encoder = TicketEncoder().eval()
tickets = backlog(2400)
vectors = torch.empty(len(tickets), WIDTH)
with torch.inference_mode():
    for picked, ids in batches(tickets):
        vectors[picked] = encoder(ids)

centre = vectors.mean(0)
spread = (vectors - centre).norm(dim=1).mean()
print(f"tickets {len(tickets)} spread {spread:.5f} centre {centre.norm() * math.sqrt(WIDTH):.5f}")
