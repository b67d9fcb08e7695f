"""A wide recommender tower in float16 with a GradScaler that never makes the host wait."""

import torch
from torch import nn
from torch.amp import GradScaler, autocast
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler

FEATURES, HIDDEN, BATCH = 512, 8192, 8192
device = torch.device("cuda")


class Rows(Dataset):
    """A table in memory; the sampler gives whole batches of rows."""

    def __init__(self, rows=65536):
        self.features = torch.randn(rows, FEATURES, dtype=torch.float16)
        self.clicks = torch.rand(rows, 1).round()

    def __len__(self):
        return len(self.clicks)

    def __getitem__(self, rows):
        return self.features[rows], self.clicks[rows]


class Tower(nn.Sequential):
    def __init__(self):
        super().__init__(
            nn.Linear(FEATURES, HIDDEN),
            nn.ReLU(inplace=True),
            nn.Linear(HIDDEN, HIDDEN),
            nn.ReLU(inplace=True),
            nn.Linear(HIDDEN, 8),
        )

    def forward(self, x):
        return super().forward(x).mean(1, keepdim=True)


def run(epochs=4):
    rows = Rows()
    sampler = BatchSampler(
        RandomSampler(rows, replacement=True, num_samples=2000 * BATCH), BATCH, drop_last=True
    )
    loader = DataLoader(
        rows, sampler=sampler, batch_size=None, num_workers=12, pin_memory=True, persistent_workers=True
    )
    tower = torch.compile(Tower().to(device))
    optimizer = torch.optim.Adam(tower.parameters(), lr=1e-3, fused=True)
    criterion = nn.BCEWithLogitsLoss()
    scaler = GradScaler()
    for _ in range(epochs):
        for features, clicks in loader:
            features = features.to(device, non_blocking=True)
            clicks = clicks.to(device, non_blocking=True)
            with autocast("cuda", dtype=torch.float16):
                loss = criterion(tower(features), clicks)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad(set_to_none=True)


run()
