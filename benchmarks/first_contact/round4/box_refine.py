"""Second stage of a detector: pools proposals from a feature map, then scores and refines them."""
import os
import random
from typing import List, Tuple

import torch
import torch.nn as nn
import torch.nn.functional as F

Box = Tuple[int, int, int, int]


class Backbone(nn.Sequential):
    def __init__(self, w):
        def c(i, o, s):
            return [nn.Conv2d(i, o, 3, s, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True)]
        super().__init__(*c(3, w, 2), *c(w, 2 * w, 2), *c(2 * w, 2 * w, 1), *c(2 * w, 4 * w, 2), *c(4 * w, 4 * w, 1))


class Refiner(nn.Module):
    def __init__(self, channels, classes, bins=7):
        super().__init__()
        self.bins = bins
        self.fc = nn.Sequential(nn.Linear(channels * bins * bins, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU())
        self.score = nn.Linear(1024, classes)
        self.shift = nn.Linear(1024, 8)

    def pool(self, features: torch.Tensor, proposals: List[List[Box]]) -> torch.Tensor:
        crops = []
        for image, boxes in zip(features, proposals):  # flaw: python-loop-over-tensor
            for x0, y0, x1, y1 in boxes:  # flaw: python-loop-over-tensor
                crops.append(F.adaptive_max_pool2d(image[:, y0:y1, x0:x1], self.bins))  # flaw: python-loop-over-tensor
        return torch.stack(crops)  # flaw: python-loop-over-tensor

    def forward(self, features, proposals):
        h = self.fc(self.pool(features, proposals).flatten(1))
        return self.score(h), self.shift(h)


def propose(images: int, per_image: int, side: int) -> List[List[Box]]:
    out = []
    for _ in range(images):
        boxes = []
        for _ in range(per_image):
            x0, y0 = random.randrange(side - 8), random.randrange(side - 8)
            boxes.append((x0, y0, random.randint(x0 + 7, side), random.randint(y0 + 7, side)))
        out.append(boxes)
    return out


def main():
    random.seed(5)
    tiny = os.environ.get("SMALL") == "1"
    batch, side, per_image, width, steps, classes = (2, 128, 3, 8, 30, 8) if tiny else (8, 512, 24, 64, 70, 64)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.backends.cudnn.benchmark = True
    backbone = Backbone(width).to(device, memory_format=torch.channels_last)
    refiner = Refiner(4 * width, classes).to(device)
    params = [*backbone.parameters(), *refiner.parameters()]
    opt = torch.optim.SGD(params, lr=0.01, momentum=0.9, fused=device.type == "cuda")
    photos = torch.rand(batch * 3, 3, side, side, device=device).to(memory_format=torch.channels_last)
    for step in range(steps):
        proposals = propose(batch, per_image, side // 8)
        label = torch.randint(classes, (batch * per_image,), device=device)
        goal = torch.randn(batch * per_image, 8, device=device)
        first = step % 3 * batch
        with torch.autocast(device.type, torch.bfloat16):
            score, shift = refiner(backbone(photos[first:first + batch]), proposals)
        loss = F.cross_entropy(score.float(), label) + F.smooth_l1_loss(shift.float(), goal)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 20 == 0:
            print(step, loss.item())


if __name__ == "__main__":
    main()
