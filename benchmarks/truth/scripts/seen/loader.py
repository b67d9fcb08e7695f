"""A loader in the main process, with a slow sample and a collate function heavy in Python."""

import random

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Shapes(Dataset):
    def __len__(self):
        return 4096

    def __getitem__(self, index):
        noise = random.Random(index)
        points = [(noise.random(), noise.random()) for _ in range(150)]
        area = 0.0
        for (x0, y0), (x1, y1) in zip(points, points[1:], strict=False):  # noqa: RUF007 - as people write it
            area += x0 * y1 - x1 * y0
        image = torch.full((3, 24, 24), area)
        image = image + torch.randn(3, 24, 24)
        return image, index % 10, points


def collate(samples):
    images = torch.stack([image for image, _, _ in samples])
    labels = torch.tensor([label for _, label, _ in samples])
    boxes = []
    for _, _, points in samples:
        xs = [x for x, _ in points]
        ys = [y for _, y in points]
        boxes.append((min(xs), min(ys), max(xs), max(ys)))
    return images, labels, torch.tensor(boxes)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 16, 3, padding=1)
        self.second = nn.Conv2d(16, 16, 3, padding=1)
        self.head = nn.Linear(16, 10)

    def forward(self, image):
        image = torch.relu(self.first(image))
        image = torch.relu(self.second(image))
        return self.head(image.mean((2, 3)))


net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
while True:
    for images, labels, boxes in DataLoader(Shapes(), batch_size=32, collate_fn=collate):
        loss = nn.functional.cross_entropy(net(images), labels) + boxes.mean() * 0
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
