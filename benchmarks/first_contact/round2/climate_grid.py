import os
import tempfile

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

YEARS, DAYS, CH, H, W = 4, 64, 12, 48, 96


def write_years(folder):
    rng = np.random.default_rng(7)
    for year in range(YEARS):
        fields = rng.standard_normal((DAYS, CH, H, W), dtype=np.float32)
        np.savez(os.path.join(folder, f"{year}.npz"), fields=fields)


class DayPairs(Dataset):
    """(today, tomorrow) pairs of the fields of one year."""

    def __init__(self, folder):
        self.folder = folder
        self.mean = np.zeros((CH, 1, 1), np.float32)
        self.std = np.ones((CH, 1, 1), np.float32)

    def __len__(self):
        return YEARS * (DAYS - 1) * 20

    def __getitem__(self, i):
        i = i % (YEARS * (DAYS - 1))
        year, day = divmod(i, DAYS - 1)
        fields = np.load(os.path.join(self.folder, f"{year}.npz"))["fields"]  # flaw: slow-sample-line
        today, tomorrow = fields[day], fields[day + 1]
        return (today - self.mean) / self.std, (tomorrow - self.mean) / self.std


class Forecaster(nn.Module):
    def __init__(self, width=192):
        super().__init__()
        self.up = nn.Conv2d(CH, width, 1)
        self.mid = nn.ModuleList([nn.Conv2d(width, width, 3, padding=1) for _ in range(6)])
        self.down = nn.Conv2d(width, CH, 1)

    def forward(self, x):
        h = self.up(x)
        for conv in self.mid:
            h = h + nn.functional.silu(conv(h))
        return x + self.down(h)


def fit(folder):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.backends.cudnn.benchmark = True
    loader = DataLoader(DayPairs(folder), batch_size=32, shuffle=True, num_workers=8, persistent_workers=True,
                        pin_memory=device.type == "cuda", drop_last=True)
    model = Forecaster().to(device, memory_format=torch.channels_last)
    opt = torch.optim.AdamW(model.parameters(), 1e-3, fused=True)
    for n, (now, then) in enumerate(loader):
        now = now.to(device, non_blocking=True, memory_format=torch.channels_last)
        then = then.to(device, non_blocking=True, memory_format=torch.channels_last)
        with torch.autocast(device.type, torch.bfloat16):
            guess = model(now)
        loss = nn.functional.mse_loss(guess.float(), then)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if n % 50 == 0:
            print(n, loss.item())


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        write_years(folder)
        fit(folder)
