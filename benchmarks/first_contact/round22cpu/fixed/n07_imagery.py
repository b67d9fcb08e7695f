#!/usr/bin/env python
# %% [markdown]
# # Imagined movements from EEG
# Spatial filters -> covariance of the filtered trial -> classifier.

# %%
import torch
import torch.nn.functional as F

from n07_imagery_lib import CovarianceNet, trials

torch.manual_seed(0)
CHANNELS, SAMPLES, CLASSES = 32, 1024, 4
BATCH, EPOCHS = 32, 40

# %%
eeg, intent = trials(count=512, channels=CHANNELS, samples=SAMPLES, classes=CLASSES, seed=0)
print(eeg.shape, intent.bincount().tolist())

# %%
net = CovarianceNet(CHANNELS, filters=32, classes=CLASSES)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, fused=True)
print(sum(p.numel() for p in net.parameters()), "parameters")

# %%
history = []
for epoch in range(EPOCHS):
    total = torch.zeros(())
    for rows in torch.randperm(len(eeg)).split(BATCH):
        loss = F.cross_entropy(net(eeg[rows]), intent[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.detach()
    history.append(total.item() * BATCH / len(eeg))
    if epoch % 8 == 7:
        print(f"epoch {epoch + 1:3d}  loss {history[-1]:.5f}", flush=True)

# %%
with torch.inference_mode():
    right = (net(eeg[:256]).argmax(1) == intent[:256]).float().mean()
print(f"right on the first 256: {right:.3f}")
