import os
from collections import Counter

import torch
from torch import nn
import torch.nn.functional as F


def sizes():
    if os.environ.get("SMALL") == "1":
        return dict(batch=2, frames=32, width=32, layers=1, tags=8, steps=30)
    return dict(batch=48, frames=512, width=512, layers=3, tags=48, steps=80)


class Gated(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.inp = nn.Linear(width, 4 * width)
        self.out = nn.Linear(2 * width, width)

    def forward(self, x):
        h = self.norm(x)
        return x + self.out(F.glu(self.inp(h)))


class Tagger(nn.Module):
    def __init__(self, width, layers, tags):
        super().__init__()
        self.front = nn.Sequential(nn.Linear(80, width), nn.ReLU(), nn.Linear(width, width))
        self.blocks = nn.Sequential(*[Gated(width) for _ in range(layers)])
        self.tags = nn.Linear(width, tags)

    def forward(self, mel):
        return self.tags(self.blocks(self.front(mel)))


class ErrorCount:
    def __init__(self):
        self.wrong, self.seen, self.mixed = 0, 0, Counter()

    def update(self, scores, labels):
        guesses = scores.argmax(-1).flatten().tolist()  # flaw: sync-in-step
        wanted = labels.flatten().tolist()  # flaw: sync-in-step
        for g, w in zip(guesses, wanted):
            self.seen += 1
            if g != w:
                self.wrong += 1
                self.mixed[w, g] += 1

    def rate(self):
        return self.wrong / max(1, self.seen)


def train(cfg):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    model = Tagger(cfg["width"], cfg["layers"], cfg["tags"]).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    mels = torch.randn(16, cfg["batch"], cfg["frames"], 80, device=device)
    labels = torch.randint(cfg["tags"], (16, cfg["batch"], cfg["frames"]), device=device)
    errors = ErrorCount()
    for step in range(cfg["steps"]):
        x, y = mels[step % 16], labels[step % 16]
        with torch.autocast(device.type, dtype=torch.bfloat16):
            scores = model(x)
            loss = F.cross_entropy(scores.flatten(0, 1), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        errors.update(scores, y)
    return errors


if __name__ == "__main__":
    result = train(sizes())
    print(f"tag error rate {result.rate():.3f}", result.mixed.most_common(3))
