"""One-stage detector with anchors on synthetic traffic pictures."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.backends.cudnn.benchmark = True
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
cuda = device.type == "cuda"
CLASSES, BOXES = 8, 24
BATCH, SIDE, WIDTH, STEPS = (64, 256, 48, 120) if cuda else (2, 64, 8, 2)
STRIDE = 16


def make_anchors(side, stride, sizes=(24, 48, 96), ratios=(0.5, 1.0, 2.0)):
    centre = (torch.arange(side // stride, device=device) + 0.5) * stride
    cy, cx = torch.meshgrid(centre, centre, indexing="ij")
    anchors = []
    for size in sizes:
        for ratio in ratios:
            w, h = size * ratio**0.5, size / ratio**0.5
            anchors.append(torch.stack([cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2], -1))
    return torch.stack(anchors, 2).view(-1, 4)


def iou(a, b):
    """Overlap of boxes (..., N, 4) and (..., M, 4)."""
    low = torch.maximum(a[..., :, None, :2], b[..., None, :, :2])
    high = torch.minimum(a[..., :, None, 2:], b[..., None, :, 2:])
    inner = (high - low).clamp(min=0).prod(-1)
    area_a = (a[..., 2:] - a[..., :2]).prod(-1)
    area_b = (b[..., 2:] - b[..., :2]).prod(-1)
    return inner / (area_a[..., :, None] + area_b[..., None, :] - inner)


def encode(anchors, boxes):
    size = anchors[..., 2:] - anchors[..., :2]
    shift = (boxes[..., :2] + boxes[..., 2:] - anchors[..., :2] - anchors[..., 2:]) / (2 * size)
    return torch.cat([shift, torch.log((boxes[..., 2:] - boxes[..., :2]) / size)], -1)


def assign(anchors, boxes, classes):
    """Class (0 is background) and box target of every anchor of every picture."""
    labels, targets = [], []  # flaw: python-loop-over-tensor
    for picture in range(len(boxes)):  # flaw: python-loop-over-tensor
        best, which = iou(anchors, boxes[picture]).max(1)  # flaw: python-loop-over-tensor
        label = classes[picture][which] + 1  # flaw: python-loop-over-tensor
        labels.append(torch.where(best > 0.4, label, torch.zeros_like(label)))  # flaw: python-loop-over-tensor
        targets.append(encode(anchors, boxes[picture][which]))  # flaw: python-loop-over-tensor
    return torch.stack(labels), torch.stack(targets)  # flaw: python-loop-over-tensor


def conv(cin, cout, stride):
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, stride, 1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True)
    )


class Detector(nn.Module):
    def __init__(self, w, per_cell):
        super().__init__()
        self.body = nn.Sequential(
            conv(3, w, 2), conv(w, 2 * w, 2), conv(2 * w, 4 * w, 2), conv(4 * w, 4 * w, 2), conv(4 * w, 4 * w, 1)
        )
        self.cls = nn.Conv2d(4 * w, per_cell * (CLASSES + 1), 1)
        self.box = nn.Conv2d(4 * w, per_cell * 4, 1)

    def forward(self, x):
        h = self.body(x)
        n = len(x)
        cls = self.cls(h).permute(0, 2, 3, 1).reshape(n, -1, CLASSES + 1)
        return cls, self.box(h).permute(0, 2, 3, 1).reshape(n, -1, 4)


def main():
    torch.manual_seed(0)
    anchors = make_anchors(SIDE, STRIDE)
    model = Detector(WIDTH, 9).to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9, fused=cuda)
    pictures = torch.rand(4, BATCH, 3, SIDE, SIDE, device=device)
    corner = torch.rand(4, BATCH, BOXES, 2, device=device) * SIDE * 0.7
    boxes = torch.cat([corner, corner + 8 + torch.rand_like(corner) * SIDE * 0.25], -1)
    classes = torch.randint(0, CLASSES, (4, BATCH, BOXES), device=device)
    for step in range(STEPS):
        k = step % 4
        x = pictures[k].contiguous(memory_format=torch.channels_last)
        labels, targets = assign(anchors, boxes[k], classes[k])
        with torch.autocast(device.type, dtype=torch.bfloat16):
            cls, box = model(x)
        positive = (labels > 0).unsqueeze(-1)
        loss = F.cross_entropy(cls.float().flatten(0, 1), labels.flatten())
        error = F.smooth_l1_loss(box.float(), targets, reduction="none") * positive
        loss = loss + error.sum() / positive.sum().clamp(min=1)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 40 == 0:
            print(f"{step:4d} {loss.item():.4f}")


if __name__ == "__main__":
    main()
