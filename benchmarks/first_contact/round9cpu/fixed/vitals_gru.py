"""Length-of-stay regression from bedside vitals of unequal duration (GRU)."""

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence

torch.manual_seed(3)
rng = np.random.default_rng(3)

N, CHANNELS, BATCH, EPOCHS = 2048, 12, 32, 4

hours = np.clip(rng.lognormal(2.9, 0.9, N), 6, 240).astype(int)
stays = [torch.randn(h, CHANNELS).cumsum(0).mul_(0.1) for h in hours]
target = torch.tensor([np.log(h) for h in hours], dtype=torch.float32)
lengths = torch.from_numpy(hours)


class StayNet(nn.Module):
    def __init__(self, hidden=64):
        super().__init__()
        self.rnn = nn.GRU(CHANNELS, hidden, batch_first=True)
        self.out = nn.Sequential(nn.Linear(hidden, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, x, length):
        states, _ = self.rnn(x)
        last = states[torch.arange(len(x)), length - 1]
        return self.out(last).squeeze(1)


model = StayNet()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)

for epoch in range(EPOCHS):
    running = 0.0
    by_length = (lengths + torch.rand(N) * 2).argsort()
    batches = by_length.split(BATCH)
    batches = [batches[i] for i in torch.randperm(len(batches))]
    for index in batches:
        x = pad_sequence([stays[i] for i in index.tolist()], batch_first=True)
        loss = nn.functional.smooth_l1_loss(model(x, lengths[index]), target[index])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        running += loss.item()
    print(f"epoch {epoch}: smooth l1 {running / len(batches):.4f}")
