"""k-means steps on tensors beside a decoder that learns the centres."""

import heapq

import torch
from torch import nn


def assign(points, centres):
    distance = (points[:, None, :] - centres[None, :, :]).pow(2).sum(-1)
    return distance.argmin(1)


def update(points, owner, count):
    centres = []
    for at in range(count):
        mine = points[owner == at]
        centres.append(mine.mean(0) if len(mine) else torch.zeros(points.shape[1]))
    return torch.stack(centres)


def nearest(points, count):
    heap = []
    for at, value in enumerate(points[:, 0].tolist()):
        heapq.heappush(heap, (abs(value), at))
        if len(heap) > count:
            heapq.heappop(heap)
    return heap


def main():
    points = torch.randn(4000, 16)
    centres = points[:40].clone()
    decoder = nn.Sequential(nn.Linear(16, 128), nn.SELU(), nn.Linear(128, 16))
    optimizer = torch.optim.SGD(decoder.parameters(), lr=0.05)
    while True:
        owner = assign(points, centres)
        centres = update(points, owner, 40)
        heap = nearest(points, 50)
        loss = (decoder(points) - centres[owner]).abs().mean() + len(heap) * 0
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()
