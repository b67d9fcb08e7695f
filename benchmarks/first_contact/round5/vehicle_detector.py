import os
import torch
import torch.nn as nn
import torch.nn.functional as F

TEST = os.environ.get("SMALL") == "1"
BATCH = 3 if TEST else 64
IMG = 32 if TEST else 256
CH = 16 if TEST else 96
GT = 4 if TEST else 24
STEPS = 30 if TEST else 60
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Backbone(nn.Module):
    def __init__(self, c):
        super().__init__()
        def cbr(i, o, s):
            return [nn.Conv2d(i, o, 3, s, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True)]
        self.seq = nn.Sequential(*cbr(3, c, 2), *cbr(c, c, 1), *cbr(c, 2 * c, 2), *cbr(2 * c, 2 * c, 1),
                                 *cbr(2 * c, 4 * c, 2), *cbr(4 * c, 4 * c, 1), *cbr(4 * c, 4 * c, 2))
        self.pred = nn.Conv2d(4 * c, 8, 1)

    def forward(self, x):
        return self.pred(self.seq(x)).flatten(2).transpose(1, 2)


def corners(b):
    return torch.cat((b[..., :2] - b[..., 2:] / 2, b[..., :2] + b[..., 2:] / 2), -1)


def overlap(a, b):
    a, b = corners(a).unsqueeze(-2), corners(b).unsqueeze(-3)
    wh = (torch.minimum(a[..., 2:], b[..., 2:]) - torch.maximum(a[..., :2], b[..., :2])).clamp(min=0)
    inter = wh.prod(-1)
    area = lambda t: (t[..., 2:] - t[..., :2]).prod(-1)
    return inter / (area(a) + area(b) - inter).clamp(min=1e-6)


def detection_loss(out, gt):
    boxes, objectness = out[..., :4].sigmoid(), out[..., 4]
    box_terms, obj_terms = [], []
    for boxes_i, obj_i, gt_i in zip(boxes, objectness, gt):  # flaw: python-loop-over-tensor
        iou = overlap(boxes_i, gt_i)
        quality = iou.amax(1)
        reach = iou.amax(0)
        box_terms.append((1 - reach).mean())
        obj_terms.append(F.binary_cross_entropy_with_logits(obj_i, quality.detach()))
    return torch.stack(box_terms).mean() + torch.stack(obj_terms).mean()


def parking_lots():
    img = torch.randn(BATCH, 3, IMG, IMG, device=device, dtype=torch.bfloat16)
    img = img.contiguous(memory_format=torch.channels_last)
    gt = torch.rand(BATCH, GT, 4, device=device) * 0.4 + 0.1
    for _ in range(STEPS):
        yield img, gt


def main():
    torch.backends.cudnn.benchmark = True
    net = Backbone(CH).to(device, memory_format=torch.channels_last)
    opt = torch.optim.SGD(net.parameters(), lr=1e-2, momentum=0.9, weight_decay=5e-4, fused=True)
    losses = []
    for img, gt in parking_lots():
        with torch.autocast(device.type, dtype=torch.bfloat16):
            out = net(img)
        loss = detection_loss(out.float(), gt)
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.detach())
    print("mean of the last ten:", torch.stack(losses[-10:]).mean().item())


main()
