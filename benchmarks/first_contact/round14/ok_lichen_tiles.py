"""Lichen species from photographed tiles: a compiled patch transformer fed by worker processes."""
import os

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

TINY = os.environ.get("TINY") == "1"
CUDA = torch.cuda.is_available()
DEV = torch.device("cuda" if CUDA else "cpu")
SIDE, BATCH, WIDTH, DEPTH, STEPS = (32, 4, 32, 1, 3) if TINY else (224, 128, 768, 8, 120)


class Tiles(Dataset):
    def __init__(self, count):
        rng = np.random.default_rng(0)
        self.sheets = rng.integers(0, 255, (64, SIDE + 32, SIDE + 32, 3), dtype=np.uint8)
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        rng = np.random.default_rng(i)
        y, x = rng.integers(0, 32, 2)
        tile = self.sheets[i % 64, y:y + SIDE, x:x + SIDE]
        if rng.random() < 0.5:
            tile = tile[:, ::-1]
        return torch.from_numpy(np.ascontiguousarray(tile)), i % 64


class LichenNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(16 * 16 * 3, WIDTH)
        self.place = nn.Parameter(torch.zeros((SIDE // 16) ** 2, WIDTH))
        layer = nn.TransformerEncoderLayer(WIDTH, max(1, WIDTH // 64), 4 * WIDTH, 0.0, "gelu", batch_first=True,
                                           norm_first=True)
        self.body = nn.TransformerEncoder(layer, DEPTH, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, 64)

    def forward(self, tiles):
        n = SIDE // 16
        x = tiles.float().div(127.5).sub(1).view(-1, n, 16, n, 16, 3).transpose(2, 3).reshape(-1, n * n, 768)
        return self.head(self.body(self.embed(x) + self.place).mean(1))


def main():
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    loader = DataLoader(Tiles(BATCH * STEPS), BATCH, shuffle=True, num_workers=2 if TINY else 12, pin_memory=CUDA,
                        persistent_workers=True, prefetch_factor=4, drop_last=True)
    model = LichenNet().to(DEV)
    model.compile()
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    total = torch.zeros((), device=DEV)
    for tiles, kind in loader:
        tiles, kind = tiles.to(DEV, non_blocking=True), kind.to(DEV, non_blocking=True)
        with torch.autocast(DEV.type, dtype=torch.bfloat16):
            loss = F.cross_entropy(model(tiles), kind)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        total += loss.detach()
    print("mean loss %.4f" % (total.item() / len(loader)))


if __name__ == "__main__":
    main()
