"""Regresses boxes at every location of a feature map, with a loss over the locations that count."""
import torch
from torch import nn


def box_loss(pred, target, weight, beta=0.11):
    gap = torch.abs(pred - target)  # flaw: hand-written-loss
    per = torch.where(gap < beta, 0.5 * gap**2 / beta, gap - 0.5 * beta)  # flaw: hand-written-loss
    return (per * weight).sum() / weight.sum().clamp(min=1)  # flaw: hand-written-loss


class FeatureHead(nn.Module):
    def __init__(self, dim, anchors):
        super().__init__()
        self.tower = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, dim), nn.ReLU())
        self.delta = nn.Linear(dim, anchors * 4)

    def forward(self, feats):
        return self.delta(self.tower(feats)).float()


class Detector:
    def __init__(self, device):
        self.device = device
        self.head = FeatureHead(256, 64).to(device)
        self.optimizer = torch.optim.AdamW(self.head.parameters(), lr=1e-4, fused=True)

    def fit(self, feats, boxes, weight, steps):
        for _ in range(steps):
            with torch.autocast(self.device, torch.bfloat16):
                pred = self.head(feats)
            loss = box_loss(pred, boxes, weight)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    n = 16 * 128 * 128
    feats = torch.randn(n, 256, device=device, dtype=torch.bfloat16)
    boxes = torch.rand(n, 256, device=device)
    weight = (torch.rand(n, 1, device=device) > 0.4).float().expand(n, 256)
    Detector(device).fit(feats, boxes, weight, 320)


if __name__ == "__main__":
    main()
