"""Anchor matching and box regression of a one-stage detector head."""
import torch
from torch import nn

torch.set_num_threads(1)
N_ITER = 400


def anchors(cells=16, size=128):
    step = size / cells
    c = (torch.arange(cells) + 0.5) * step
    cy, cx = torch.meshgrid(c, c, indexing="ij")
    centre = torch.stack([cx, cy], -1).view(-1, 1, 2)
    half = torch.tensor([[8.0, 8.0], [12.0, 6.0], [6.0, 12.0]])
    return torch.cat([centre - half, centre + half], -1).view(-1, 4)


def box_iou(a, b):
    """IoU of every anchor with every box: (B, A, G)."""
    out = a.new_zeros(b.shape[0], a.shape[0], b.shape[1])  # flaw: python-loop-over-tensor
    for i in range(b.shape[0]):  # flaw: python-loop-over-tensor
        for g in range(b.shape[1]):  # flaw: python-loop-over-tensor
            box = b[i, g]  # flaw: python-loop-over-tensor
            wh = (torch.minimum(a[:, 2:], box[2:]) - torch.maximum(a[:, :2], box[:2])).clamp(min=0)  # flaw: python-loop-over-tensor
            inter = wh[:, 0] * wh[:, 1]  # flaw: python-loop-over-tensor
            area = (a[:, 2:] - a[:, :2]).prod(1) + (box[2:] - box[:2]).prod()  # flaw: python-loop-over-tensor
            out[i, :, g] = inter / (area - inter)  # flaw: python-loop-over-tensor
    return out


class Head(nn.Module):
    def __init__(self, ch=12):
        super().__init__()
        self.trunk = nn.Sequential(nn.Conv2d(3, ch, 4, 4), nn.ReLU(), nn.Conv2d(ch, ch, 2, 2), nn.ReLU(),
                                   nn.Conv2d(ch, ch, 3, padding=1), nn.ReLU())
        self.score, self.delta = nn.Conv2d(ch, 3, 1), nn.Conv2d(ch, 12, 1)

    def forward(self, img):
        h = self.trunk(img)
        score = self.score(h).permute(0, 2, 3, 1).reshape(len(img), -1)
        return score, self.delta(h).permute(0, 2, 3, 1).reshape(len(img), -1, 4)


def scenes(batch, gen):
    xy = 16 + 80 * torch.rand(batch, 18, 2, generator=gen)
    wh = 10 + 14 * torch.rand(batch, 18, 2, generator=gen)
    return torch.randn(batch, 3, 128, 128, generator=gen), torch.cat([xy, xy + wh], -1)


def training(n_iter):
    torch.manual_seed(10)
    gen = torch.Generator().manual_seed(10)
    grid, head = anchors(), Head()
    opt = torch.optim.SGD(head.parameters(), lr=0.01, momentum=0.9)
    for it in range(n_iter):
        img, boxes = scenes(8, gen)
        best, which = box_iou(grid, boxes).max(-1)
        positive = best > 0.4
        score, delta = head(img)
        wanted = boxes.gather(1, which.unsqueeze(-1).expand(-1, -1, 4))
        box_loss = (nn.functional.smooth_l1_loss(delta, (wanted - grid) / 16, reduction="none").mean(-1) * positive).sum()
        loss = nn.functional.binary_cross_entropy_with_logits(score, positive.float()) + box_loss / positive.sum().clamp(min=1)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if (it + 1) % 200 == 0:
            print(f"iter {it + 1}: loss {loss.item():.4f}, mean best iou {best.mean().item():.4f}")


training(N_ITER)
