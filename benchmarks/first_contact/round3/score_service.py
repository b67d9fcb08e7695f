"""Scores requests of different lengths (tracks of detected objects) as a server would."""
import os
import random
import torch
from torch import nn
import torch.nn.functional as F

SMALL = os.environ.get("SMALL") == "1"


class TrackScorer(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.inp = nn.Linear(16, width)
        self.layers = nn.ModuleList(nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)) for _ in range(depth))
        self.out = nn.Linear(width, 1)

    def forward(self, tracks):
        h = self.inp(tracks)
        for layer in self.layers:
            h = h + layer(h - h.mean(1, keepdim=True))
        return self.out(F.silu(h).amax(1))


def requests(count, batch, longest, seed=4):
    draw = random.Random(seed)
    lengths = [draw.randint(longest // 4, longest) for _ in range(3 if SMALL else 5)]
    for _ in range(count):
        yield torch.randn(batch, draw.choice(lengths), 16)


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    width, depth, batch, longest, count = (8, 1, 2, 24, 30) if SMALL else (512, 6, 64, 1024, 200)
    model = TrackScorer(width, depth).to(device).eval()
    fast = torch.compile(model, dynamic=False)  # flaw: recompilation
    queue = [r.pin_memory() if device == "cuda" else r for r in requests(min(count, 40), batch, longest)]
    answers = []
    with torch.inference_mode():
        for i in range(count):
            tracks = queue[i % len(queue)].to(device, non_blocking=True)
            with torch.autocast(device, dtype=torch.bfloat16):
                answers.append(fast(tracks))
    print("mean score", torch.cat(answers).float().mean().item())


if __name__ == "__main__":
    main()
