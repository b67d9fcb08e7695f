"""Embed a set of proteins for an atlas."""
import os

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

TINY = bool(os.environ.get("TINY"))
CONFIG = {
    "proteins": 24 if TINY else 64 * 600,
    "rows": 4 if TINY else 64,
    "longest": 64 if TINY else 1024,
    "width": 32 if TINY else 512,
    "depth": 2 if TINY else 8,
    "workers": 0 if TINY else 12,
}
PAD = 0


class Proteins(Dataset):
    def __init__(self, count, longest):
        rng = np.random.default_rng(0)
        self.lengths = np.clip(rng.lognormal(np.log(longest / 4), 0.5, count), 12, longest).astype(int)
        self.letters = rng.integers(1, 25, longest * 64)

    def __len__(self):
        return len(self.lengths)

    def __getitem__(self, i):
        at = (i * 37) % (len(self.letters) - self.lengths[i])
        return i, torch.from_numpy(self.letters[at : at + self.lengths[i]])


class Collate:
    def __init__(self, longest):
        self.longest = longest

    def __call__(self, samples):
        longest = -(-max(len(seq) for _, seq in samples) // 8) * 8
        ids = torch.full((len(samples), min(longest, self.longest)), PAD)
        for row, (_, seq) in zip(ids, samples):
            row[: len(seq)] = seq
        return torch.tensor([i for i, _ in samples]), ids


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, real):
        b, t, c = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, 8, c // 8).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=real[:, None, None, :])
        x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
        return x + self.down(F.gelu(self.up(self.n2(x))))


class Encoder(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.letters = nn.Embedding(25, width, padding_idx=PAD)
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))

    def forward(self, ids):
        real = ids != PAD
        x = self.letters(ids)
        for block in self.blocks:
            x = block(x, real)
        weight = real.unsqueeze(-1).to(x.dtype)
        return (x * weight).sum(1) / weight.sum(1)


def plan(data, rows):
    order = np.argsort(-data.lengths, kind="stable")
    return [order[i : i + rows].tolist() for i in range(0, len(order), rows)]


@torch.inference_mode()
def main(c):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    data = Proteins(c["proteins"], c["longest"])
    loader = DataLoader(
        data, batch_sampler=plan(data, c["rows"]), collate_fn=Collate(c["longest"]),
        num_workers=c["workers"], pin_memory=device == "cuda",
    )
    net = Encoder(c["width"], c["depth"]).to(device, torch.bfloat16).eval()
    atlas = torch.zeros(len(data), c["width"], device=device)
    for index, ids in loader:
        index, ids = index.to(device, non_blocking=True), ids.to(device, non_blocking=True)
        atlas[index] = net(ids).float()
    print(f"spread {atlas.std(0).mean().item():.3f}")


if __name__ == "__main__":
    main(CONFIG)
