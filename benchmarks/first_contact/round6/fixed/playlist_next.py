"""Next-track model: a bag of the recent tracks predicts the next one among sampled candidates."""
import os
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor, nn

_small = bool(os.environ.get("SMALL"))


def table_options() -> dict:
    return {
        "mode": "mean",
        "include_last_offset": False,
        "sparse": True,
    }


@dataclass
class Settings:
    tracks: int = 5000 if _small else 4_000_000
    dim: int = 16 if _small else 64
    hidden: int = 32 if _small else 2048
    history: int = 8 if _small else 30
    candidates: int = 16 if _small else 128
    batch: int = 8 if _small else 2048
    steps: int = 30 if _small else 120
    table: dict = field(default_factory=table_options)


class NextTrack(nn.Module):
    def __init__(self, s: Settings) -> None:
        super().__init__()
        self.recent = nn.EmbeddingBag(s.tracks, s.dim, **s.table)
        self.query = nn.Sequential(
            nn.Linear(s.dim, s.hidden), nn.GELU(), nn.Linear(s.hidden, s.hidden), nn.GELU(), nn.Linear(s.hidden, s.dim)
        )

    def forward(self, history: Tensor, candidates: Tensor) -> Tensor:
        q = self.query(self.recent(history))
        keys = self.recent(candidates.reshape(-1, 1)).view(*candidates.shape, -1)
        return torch.einsum("bd,bcd->bc", q, keys)


class Trainer:
    def __init__(self, s: Settings) -> None:
        self.s = s
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.model = NextTrack(s).to(self.device)
        self.optimizers = [
            torch.optim.Adagrad(self.model.recent.parameters(), lr=0.05),
            torch.optim.AdamW(self.model.query.parameters(), lr=1e-3, fused=True),
        ]

    def sessions(self):
        g = torch.Generator(self.device).manual_seed(9)
        for _ in range(self.s.steps):
            yield (
                torch.randint(self.s.tracks, (self.s.batch, self.s.history), device=self.device, generator=g),
                torch.randint(self.s.tracks, (self.s.batch, self.s.candidates), device=self.device, generator=g),
            )

    def fit(self) -> None:
        target = torch.zeros(self.s.batch, dtype=torch.long, device=self.device)
        for i, (history, candidates) in enumerate(self.sessions()):
            with torch.autocast(self.device.type, torch.bfloat16):
                scores = self.model(history, candidates)
            loss = F.cross_entropy(scores.float(), target)
            for opt in self.optimizers:
                opt.zero_grad()
            loss.backward()
            for opt in self.optimizers:
                opt.step()
            if i % 40 == 0:
                print(i, f"{loss.item():.4f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    Trainer(Settings()).fit()
