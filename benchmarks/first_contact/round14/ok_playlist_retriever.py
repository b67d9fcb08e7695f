"""Two-tower retrieval at inference: listeners from their last tracks, best tracks of the catalogue."""
import os
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Catalogue:
    tracks: int = 262_144
    recent: int = 64
    width: int = 256
    hidden: int = 4096
    listeners: int = 8192
    best: int = 50
    rounds: int = 900


class Listener(nn.Module):
    def __init__(self, c: Catalogue):
        super().__init__()
        self.taste = nn.EmbeddingBag(c.tracks, c.width, mode="mean")
        self.tower = nn.Sequential(
            nn.Linear(c.width, c.hidden), nn.GELU(), nn.Linear(c.hidden, c.hidden), nn.GELU(), nn.Linear(c.hidden, c.width)
        )

    def forward(self, recent):
        return F.normalize(self.tower(self.taste(recent)), dim=-1)


@torch.inference_mode()
def serve(c: Catalogue):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    dtype = torch.bfloat16
    torch.manual_seed(50)
    tower = Listener(c).to(device, dtype).eval()
    shelf = F.normalize(torch.randn(c.tracks // 4, c.width, device=device), dim=-1).to(dtype)
    dice = torch.Generator(device).manual_seed(51)
    plays = torch.zeros(c.tracks // 4, dtype=torch.long, device=device)
    one = torch.ones((), dtype=torch.long, device=device)
    for _ in range(c.rounds):
        recent = torch.randint(0, c.tracks, (c.listeners, c.recent), device=device, generator=dice)
        scores = tower(recent) @ shelf.T
        best = scores.topk(c.best, dim=1).indices
        plays.index_put_((best.flatten(),), one, accumulate=False)
    print(f"{plays.sum().item()} of {len(plays)} tracks were offered")


if __name__ == "__main__":
    small = Catalogue(400, 8, 16, 32, 8, 5, 5)
    serve(small if os.environ.get("TINY") == "1" else Catalogue())
