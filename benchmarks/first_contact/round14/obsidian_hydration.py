"""Regress the age of obsidian flakes from hydration-rim profiles."""
import os
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

TINY = os.environ.get("TINY") == "1"
DEV = "cuda" if torch.cuda.is_available() else "cpu"
SETTINGS = {
    "flakes": 128 if TINY else 2048,
    "points": 128 if TINY else 1024,
    "width": 32 if TINY else 512,
    "blocks": 2 if TINY else 6,
    "epochs": 2 if TINY else 40,
    "loader": {
        "batch_size": 32 if TINY else 256,
        "num_workers": 2 if TINY else 10,
        "shuffle": True,
        "drop_last": True,
        "pin_memory": DEV == "cuda",
        "persistent_workers": False,  # flaw: loader-workers-restart
    },
}


class Rims(Dataset):
    def __init__(self, count, points):
        rng = np.random.default_rng(4)
        self.ages = rng.uniform(0.1, 1.0, count).astype(np.float32)
        self.grid = np.linspace(0, 1, points, dtype=np.float32)
        self.noise = rng.standard_normal(points, dtype=np.float32) * 0.05

    def __len__(self):
        return len(self.ages)

    def __getitem__(self, i):
        rim = 1 / (1 + np.exp((self.grid - self.ages[i] ** 0.5) * 25))
        return np.roll(self.noise, i) + rim, self.ages[i]


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        return x + self.mlp(self.norm(x))


class Dater(nn.Module):
    def __init__(self, width, blocks, patch=8):
        super().__init__()
        self.patch = patch
        self.inp = nn.Linear(patch, width)
        self.body = nn.Sequential(*[Block(width) for _ in range(blocks)])
        self.out = nn.Linear(width, 1)

    def forward(self, rim):
        return self.out(self.body(self.inp(rim.unflatten(1, (-1, self.patch)))).mean(1)).squeeze(1)


def main():
    torch.manual_seed(0)
    loader = DataLoader(Rims(SETTINGS["flakes"], SETTINGS["points"]), **SETTINGS["loader"])
    model = Dater(SETTINGS["width"], SETTINGS["blocks"]).to(DEV)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    for epoch in range(SETTINGS["epochs"]):
        total = torch.zeros((), device=DEV)
        for rims, ages in loader:
            rims, ages = rims.to(DEV, non_blocking=True), ages.to(DEV, non_blocking=True)
            with torch.autocast(DEV, torch.bfloat16):
                guess = model(rims)
            loss = nn.functional.mse_loss(guess.float(), ages)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.detach()
        print(f"epoch {epoch} mse {total.item() / len(loader):.4f}")


if __name__ == "__main__":
    main()
