"""A language model for melodies; memory-mapped corpus and workers."""
import os
import tempfile
import numpy as np
import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

tiny = os.environ.get("TINY") == "1"
dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")
NOTES = 1024
LENGTH, ROWS, WIDTH, HEADS, DEPTH, STEPS = (16, 2, 16, 2, 2, 3) if tiny else (1024, 16, 768, 12, 10, 220)


class Corpus(Dataset):
    def __init__(self, path, count):
        self.path, self.count = path, count
        self.notes = np.memmap(path, np.uint16, "r")

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        start = (i * 7919) % (len(self.notes) - LENGTH - 1)
        return torch.from_numpy(self.notes[start : start + LENGTH + 1].astype(np.int64))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.proj = nn.Linear(WIDTH, WIDTH, bias=False)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        b, n, w = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, n, 3, HEADS, w // HEADS).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(a.transpose(1, 2).reshape(b, n, w))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Melodies(nn.Module):
    def __init__(self):
        super().__init__()
        self.notes = nn.Embedding(NOTES, WIDTH)
        self.places = nn.Parameter(torch.randn(LENGTH, WIDTH) * 0.02)
        self.blocks = nn.ModuleList(Block() for _ in range(DEPTH))
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, ids):
        x = self.notes(ids) * 0.02 + self.places
        for block in self.blocks:
            x = block(x)
        return F.linear(self.norm(x), self.notes.weight * 0.05)


def main():
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "notes.bin")
        np.random.default_rng(0).integers(0, NOTES, 2_000_000, dtype=np.uint16).tofile(path)
        loader = DataLoader(Corpus(path, ROWS * STEPS), ROWS, num_workers=2 if tiny else 6, pin_memory=dev.type == "cuda", drop_last=True)
        model = Melodies().to(dev)
        opt = torch.optim.AdamW(model.parameters(), 3e-4, betas=(0.9, 0.95), fused=True)
        total = torch.zeros((), device=dev)
        for ids in loader:
            ids = ids.to(dev, non_blocking=True)
            with torch.autocast(dev.type, torch.bfloat16):
                scores = model(ids[:, :-1])
                loss = F.cross_entropy(scores.flatten(0, 1), ids[:, 1:].flatten())
            loss.backward()
            opt.step()
            opt.zero_grad()
            total += loss.detach()
        print(f"mean loss {total.item() / len(loader):.3f}")


if __name__ == "__main__":
    main()
