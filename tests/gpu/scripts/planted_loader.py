"""A loader without workers whose every batch sleeps 16 ms, at one line of its dataset."""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Slow(Dataset):
    def __len__(self):
        return 1 << 20

    def __getitem__(self, index):
        if index % 32 == 0:
            time.sleep(0.016)  # planted: 16
        return torch.ones(256)


model = nn.Sequential(nn.Linear(256, 4096), nn.ReLU(), nn.Linear(4096, 256)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for x in DataLoader(Slow(), batch_size=32):
    loss = model(x.cuda()).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
