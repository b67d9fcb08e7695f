"""Day-ahead load forecasting with a small mixer, many short epochs over few households."""
import os
import math
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, Dataset

QUICK = bool(int(os.environ.get("SMALL", "0")))
DEV = "cuda" if torch.cuda.is_available() else "cpu"
CONTEXT, HORIZON = (48, 12) if QUICK else (672, 96)
HOUSES = 16 if QUICK else 2560
CHANNELS = 4 if QUICK else 32
WIDTH = 16 if QUICK else 1024
BATCH = 8 if QUICK else 256
EPOCHS = 15 if QUICK else 8


class Households(Dataset):
    def __init__(self):
        g = torch.Generator().manual_seed(1)
        t = torch.arange(CONTEXT + HORIZON + 512)
        daily = torch.sin(2 * math.pi * t / 96)
        self.base = daily + 0.1 * torch.randn(CHANNELS, len(t), generator=g)
        self.scale = torch.rand(HOUSES, generator=g) + 0.5

    def __len__(self):
        return HOUSES

    def __getitem__(self, house):
        start = (house * 37) % 512
        window = self.base[:, start:start + CONTEXT + HORIZON] * self.scale[house]
        return window[:, :CONTEXT], window[:, CONTEXT:]


class MixBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.a = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))
        self.b = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))

    def forward(self, x):
        x = x + self.a(self.n1(x))
        return x + self.b(self.n2(x))


net = nn.Sequential(nn.Linear(CONTEXT, WIDTH), *[MixBlock() for _ in range(1 if QUICK else 4)], nn.Linear(WIDTH, HORIZON)).to(DEV)
optim = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
train = DataLoader(Households(), batch_size=BATCH, shuffle=True, num_workers=2 if QUICK else 8, pin_memory=DEV == "cuda", persistent_workers=True)

for epoch in range(EPOCHS):
    running = torch.zeros((), device=DEV)
    for past, future in train:
        past = past.to(DEV, non_blocking=True)
        future = future.to(DEV, non_blocking=True)
        with torch.autocast(DEV, torch.bfloat16):
            pred = net(past)
        loss = nn.functional.huber_loss(pred.float(), future)
        loss.backward()
        optim.step()
        optim.zero_grad()
        running += loss.detach()
    if epoch % 4 == 3:
        print("epoch", epoch, "huber", round(running.item() / len(train), 4))
