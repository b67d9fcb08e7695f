"""Route support tickets to teams with a small bidirectional encoder."""
import os
import random

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

SMALL = os.environ.get("SMALL") == "1"
VOCAB, WIDTH, HEADS, LAYERS, LIMIT, TEAMS = (100, 32, 2, 1, 48, 8) if SMALL else (16384, 512, 8, 6, 512, 32)
BATCH, STEPS, WORKERS = (2, 30, 2) if SMALL else (48, 80, 6)


class Tickets(Dataset):
    def __init__(self, count):
        rng = random.Random(1)
        top = LIMIT // 3
        self.lengths = [min(top, max(5, int(rng.expovariate(4 / top)))) for _ in range(count)]
        self.words = torch.randint(1, VOCAB, (1 << 16,))

    def __len__(self):
        return len(self.lengths)

    def __getitem__(self, i):
        start = (i * 131) % (len(self.words) - LIMIT)
        return self.words[start : start + self.lengths[i]], i % TEAMS


def collate(rows):
    ids = torch.zeros(len(rows), LIMIT, dtype=torch.long)  # flaw: padded-batches
    for at, (words, _) in enumerate(rows):
        ids[at, : len(words)] = words
    return ids, torch.tensor([team for _, team in rows])


class Router(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(VOCAB, WIDTH, padding_idx=0), nn.Embedding(LIMIT, WIDTH)
        self.n1 = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(LAYERS))
        self.n2 = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(LAYERS))
        self.qkv = nn.ModuleList(nn.Linear(WIDTH, 3 * WIDTH) for _ in range(LAYERS))
        self.out = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS))
        self.ff = nn.ModuleList(
            nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)) for _ in range(LAYERS)
        )
        self.teams = nn.Linear(WIDTH, TEAMS)

    def forward(self, ids):
        real = ids != 0
        mask = real[:, None, None, :].expand(-1, 1, ids.shape[1], -1)
        x = self.words(ids) + self.places.weight[: ids.shape[1]]
        for n1, n2, qkv, out, ff in zip(self.n1, self.n2, self.qkv, self.out, self.ff):
            q, k, v = qkv(n1(x)).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
            x = x + out(y.transpose(1, 2).flatten(2))
            x = x + ff(n2(x))
        weight = real.to(x.dtype)[..., None]
        return self.teams((x * weight).sum(1) / weight.sum(1))


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    loader = DataLoader(
        Tickets(BATCH * STEPS), BATCH, shuffle=True, drop_last=True, collate_fn=collate,
        num_workers=WORKERS, pin_memory=device.type == "cuda", persistent_workers=True,
    )
    model = Router().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4, fused=True)
    total = torch.zeros((), device=device)
    for ids, team in loader:
        ids, team = ids.to(device, non_blocking=True), team.to(device, non_blocking=True)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            loss = F.cross_entropy(model(ids), team)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.detach()
    print("mean loss", total.item() / STEPS)


if __name__ == "__main__":
    main()
