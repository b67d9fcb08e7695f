"""Train a small convolutional network on drawn digits held in memory, module level."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

SEGMENTS = torch.tensor(
    [
        [1, 1, 1, 0, 1, 1, 1],
        [0, 0, 1, 0, 0, 1, 0],
        [1, 0, 1, 1, 1, 0, 1],
        [1, 0, 1, 1, 0, 1, 1],
        [0, 1, 1, 1, 0, 1, 0],
        [1, 1, 0, 1, 0, 1, 1],
        [1, 1, 0, 1, 1, 1, 1],
        [1, 0, 1, 0, 0, 1, 0],
        [1, 1, 1, 1, 1, 1, 1],
        [1, 1, 1, 1, 0, 1, 1],
    ],
    dtype=torch.float32,
)
BOXES = [(4, 6, 8, 20), (4, 14, 8, 10), (4, 14, 18, 20), (13, 15, 8, 20)]
BOXES += [(14, 24, 8, 10), (14, 24, 18, 20), (22, 24, 8, 20)]

templates = torch.zeros(7, 28, 28)
for template, (top, bottom, left, right) in zip(templates, BOXES):
    template[top:bottom, left:right] = 1

labels = torch.randint(10, (6000,))
images = (SEGMENTS[labels] @ templates.flatten(1)).view(-1, 1, 28, 28).clamp_(max=1)
images += 0.5 * torch.randn_like(images)

model = nn.Sequential(
    nn.Conv2d(1, 16, 5, padding=2, bias=False),
    nn.BatchNorm2d(16),
    nn.ReLU(inplace=True),
    nn.MaxPool2d(2),
    nn.Conv2d(16, 32, 3, padding=1, bias=False),
    nn.BatchNorm2d(32),
    nn.ReLU(inplace=True),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Linear(32 * 49, 64),
    nn.ReLU(inplace=True),
    nn.Linear(64, 10),
)
optimizer = torch.optim.SGD(
    model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4, nesterov=True, fused=True
)
batch_size = 64
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, epochs=3, steps_per_epoch=94)

for epoch in range(3):
    total = torch.zeros(())
    for indices in torch.randperm(len(labels)).split(batch_size):
        loss = F.cross_entropy(model(images[indices]), labels[indices])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        total += loss.detach()
    print(f"epoch {epoch}: {total.item() / 94:.4f}")

model.eval()
with torch.inference_mode():
    accuracy = (model(images[:1000]).argmax(1) == labels[:1000]).float().mean()
print(f"accuracy {accuracy.item():.3f}")
