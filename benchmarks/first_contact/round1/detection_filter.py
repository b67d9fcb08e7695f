"""Keeps the confident boxes of each picture and refines them."""
import torch
from torch import nn


class Proposals(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, dim), nn.ReLU())
        self.score = nn.Linear(dim, 1)

    def forward(self, f):
        h = self.trunk(f)
        return h, self.score(h).squeeze(-1)


class Refiner(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim, dim), nn.GELU(), nn.Linear(dim, 4))

    def forward(self, h):
        return self.net(h)


def confident(hidden, scores):
    return [h[s > s.mean()] for h, s in zip(hidden, scores)]  # flaw: sync-in-step|python-loop-over-tensor


def main(batch=48, anchors=2000, dim=512):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    stages = nn.ModuleList([Proposals(dim), Refiner(dim)]).to(device)
    opt = torch.optim.SGD(stages.parameters(), 1e-3, momentum=0.9, fused=True)
    feats = torch.randn(batch, anchors, dim, device=device)
    for _ in range(320):
        with torch.autocast(device, torch.bfloat16):
            hidden, scores = stages[0](feats)
            kept = torch.cat(confident(hidden, scores))
            boxes = stages[1](kept)
        loss = boxes.float().abs().mean() + scores.float().square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()


main()
