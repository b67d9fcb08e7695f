"""Regression on a table of concrete mixtures, plain script."""

import numpy as np
import torch
from torch import nn

rng = np.random.default_rng(0)
torch.manual_seed(0)

# 24k mixtures, 32 engineered columns
mixtures = rng.uniform(0, 1, size=(24000, 32))
weights = rng.normal(size=(32, 4))
strength = np.sin(mixtures @ weights).sum(axis=1, keepdims=True)
strength += 0.05 * rng.normal(size=strength.shape)

mean, std = mixtures.mean(axis=0), mixtures.std(axis=0)
X = torch.from_numpy((mixtures - mean) / std)  # flaw: float64-on-device
y = torch.from_numpy(strength)  # flaw: float64-on-device

train_X, train_y = X[:20000], y[:20000]
test_X, test_y = X[20000:], y[20000:]

model = nn.Sequential(
    nn.Linear(32, 256),
    nn.ReLU(),
    nn.Linear(256, 256),
    nn.ReLU(),
    nn.Linear(256, 128),
    nn.ReLU(),
    nn.Linear(128, 1),
)
model.double()  # flaw: float64-on-device

optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
criterion = nn.MSELoss()

batch_size = 1000
epochs = 20
for epoch in range(epochs):
    order = torch.randperm(len(train_X))
    model.train()
    for indices in order.split(batch_size):
        prediction = model(train_X[indices])
        loss = criterion(prediction, train_y[indices])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    if (epoch + 1) % 5 == 0:
        model.eval()
        with torch.inference_mode():
            test_loss = criterion(model(test_X), test_y)
        print(f"epoch {epoch + 1:3d}  train {loss.item():.3f}  test {test_loss.item():.3f}")
