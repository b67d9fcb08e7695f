"""Estimates normals of point clouds from neighbourhoods found once per cloud."""
import os
import torch
from torch import nn
import torch.nn.functional as F

SMALL = os.environ.get("SMALL") == "1"
device = "cuda" if torch.cuda.is_available() else "cpu"


@torch.no_grad()
def neighbours(points, k):
    return torch.stack([torch.cdist(p, p).topk(k, largest=False).indices for p in points])


class Normals(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.local = nn.Sequential(nn.Linear(3, w), nn.ReLU(), nn.Linear(w, 2 * w), nn.ReLU(), nn.Linear(2 * w, 4 * w))
        self.out = nn.Sequential(nn.Linear(4 * w, 2 * w), nn.ReLU(), nn.Linear(2 * w, 3))

    def forward(self, patches):
        return self.out(self.local(patches).amax(2))


def gather(points, near):
    b, n, k = near.shape
    flat = near.reshape(b, n * k, 1).expand(-1, -1, 3)
    return points.gather(1, flat).view(b, n, k, 3) - points.unsqueeze(2)


def main():
    clouds, n, k, w, batch, steps = (4, 32, 4, 8, 2, 30) if SMALL else (32, 2048, 24, 128, 8, 100)
    points = torch.randn(clouds, n, 3, device=device)
    normals = F.normalize(points, dim=-1)
    patches = gather(points, neighbours(points, k))
    net = Normals(w).to(device)
    opt = torch.optim.AdamW(net.parameters(), 1e-3, fused=True)
    for step in range(steps):
        pick = torch.randint(clouds, (batch,), device=device)
        with torch.autocast(device, dtype=torch.bfloat16):
            guess = net(patches[pick])
        loss = 1 - F.cosine_similarity(guess.float(), normals[pick], dim=-1).abs().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if (step + 1) % 50 == 0:
            print(step + 1, loss.item())


if __name__ == "__main__":
    main()
