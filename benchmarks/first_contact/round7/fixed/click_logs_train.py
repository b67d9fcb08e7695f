"""Click-through prediction from hashed log lines."""

import zlib

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

GPU = torch.cuda.is_available()
device = torch.device("cuda" if GPU else "cpu")
FIELDS, BUCKETS, DIM = 16, (200_000 if GPU else 500), (64 if GPU else 4)
ROWS, BATCH = (204_800, 2048) if GPU else (200, 50)
HIDDEN = 2048 if GPU else 16
WORKERS = 12 if GPU else 1


class ClickLogs(Dataset):
    def __init__(self, rows):
        rng = np.random.default_rng(0)
        self.raw = rng.integers(0, 100_000, size=(rows, FIELDS), dtype=np.int32)
        self.labels = (rng.random(rows) < 0.2).astype(np.float32)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        line = [b"%d=%d" % (f, value) for f, value in enumerate(self.raw[i])]
        ids = np.fromiter((zlib.crc32(cell) % BUCKETS for cell in line), np.int64, FIELDS)
        return ids, self.labels[i]


class CTRModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(BUCKETS, DIM)
        self.mlp = nn.Sequential(
            nn.Linear(FIELDS * DIM, HIDDEN),
            nn.ReLU(inplace=True),
            nn.Linear(HIDDEN, HIDDEN),
            nn.ReLU(inplace=True),
            nn.Linear(HIDDEN, HIDDEN),
            nn.ReLU(inplace=True),
            nn.Linear(HIDDEN, 1),
        )

    def forward(self, ids):
        return self.mlp(self.table(ids).flatten(1)).squeeze(1)


def main():
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    loader = DataLoader(
        ClickLogs(ROWS),
        batch_size=BATCH,
        shuffle=True,
        drop_last=True,
        pin_memory=GPU,
        num_workers=WORKERS,
        persistent_workers=WORKERS > 0,
    )
    model = CTRModel().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=GPU)
    criterion = nn.BCEWithLogitsLoss()
    for step, (ids, clicked) in enumerate(loader):
        ids = ids.to(device, non_blocking=True)
        clicked = clicked.to(device, non_blocking=True)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            logits = model(ids)
        loss = criterion(logits.float(), clicked)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if step % 25 == 0:
            print(f"step {step} logloss {loss.item():.4f}")
    print(f"logloss {loss.item():.4f}")


if __name__ == "__main__":
    main()
