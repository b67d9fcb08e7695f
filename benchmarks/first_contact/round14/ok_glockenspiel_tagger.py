"""Tags strokes of glockenspiels in short recordings."""
import os
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

TINY = os.environ.get("TINY") == "1"
DEV = "cuda" if torch.cuda.is_available() else "cpu"
CLIPS, FRAMES, BINS, BATCH, WIDTH, EPOCHS = (64, 32, 16, 16, 32, 2) if TINY else (8192, 256, 80, 128, 768, 6)


class Strokes(Dataset):
    def __init__(self):
        rng = np.random.default_rng(1)
        self.bars = rng.integers(0, 32, CLIPS)
        self.hiss = rng.standard_normal((FRAMES, BINS), dtype=np.float32)

    def __len__(self):
        return CLIPS

    def __getitem__(self, i):
        clip = np.roll(self.hiss, i, axis=0)
        clip[:, self.bars[i] % BINS] += 3
        return clip, int(self.bars[i])


class Ring(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (8, -1)).transpose(1, 2) for t in self.qkv(self.norm(x)).chunk(3, -1))
        x = x + self.out(nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + self.mlp(x)


def main():
    torch.manual_seed(0)
    loader = DataLoader(Strokes(), BATCH, shuffle=True, drop_last=True, num_workers=2 if TINY else 12,
                        pin_memory=DEV == "cuda", persistent_workers=True, prefetch_factor=4)
    net = nn.Sequential(nn.Linear(BINS, WIDTH), *[Ring() for _ in range(1 if TINY else 6)]).to(DEV)
    head = nn.Linear(WIDTH, 32).to(DEV)
    opt = torch.optim.AdamW([*net.parameters(), *head.parameters()], lr=2e-4, fused=True)
    for epoch in range(EPOCHS):
        total = torch.zeros((), device=DEV)
        for clips, bars in loader:
            clips, bars = clips.to(DEV, non_blocking=True), bars.to(DEV, non_blocking=True)
            with torch.autocast(DEV, torch.bfloat16):
                loss = nn.functional.cross_entropy(head(net(clips).mean(1)), bars)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            total += loss.detach()
        print(epoch, round(total.item() / len(loader), 4))


if __name__ == "__main__":
    main()
