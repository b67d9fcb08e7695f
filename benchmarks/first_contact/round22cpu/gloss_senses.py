"""All senses of each sign in a sign-language line, position by position; criteria come from a registry."""
import time
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

CRITERIA = {}


def criterion(name):
    def keep(cls):
        CRITERIA[name] = cls
        return cls

    return keep


@criterion("ranked")
class Ranked(nn.Module):
    """One sense is drawn from the right ones; all others compete with it."""

    def forward(self, scores, right):
        return F.cross_entropy(scores, right.multinomial(1).squeeze(1))


@criterion("every")
class Every(nn.Module):
    """Each sense is a question of its own."""

    def forward(self, scores, right):
        yes, no = F.logsigmoid(scores), F.logsigmoid(-scores)  # flaw: hand-written-loss
        return -(right * yes + (1 - right) * no).sum(dim=1).mean()  # flaw: hand-written-loss


@dataclass
class Settings:
    glosses: int = 400
    senses: int = 6400
    dim: int = 64
    length: int = 32
    rows: int = 24
    criterion: str = "every"
    lr: float = 2e-3
    steps: int = 240
    seed: int = 40


class Gloss2Senses(nn.Module):
    def __init__(self, s: Settings):
        super().__init__()
        self.enter = nn.Embedding(s.glosses, s.dim)
        self.local = nn.Conv1d(s.dim, s.dim, 3, padding=1)
        self.norm = nn.LayerNorm(s.dim)
        self.senses = nn.Linear(s.dim, s.senses)

    def forward(self, glosses):
        h = self.enter(glosses)
        h = self.norm(h + F.gelu(self.local(h.mT)).mT)
        return self.senses(h)


def lines(s: Settings, device):
    """A gloss has some senses; which ones depends on whether the gloss before was even."""
    rng = torch.Generator(device).manual_seed(s.seed)
    lexicon = (torch.rand(2, s.glosses, s.senses, device=device, generator=rng) < 0.002).float()
    while True:
        glosses = torch.randint(s.glosses, (s.rows, s.length), device=device, generator=rng)
        yield glosses, lexicon[glosses.roll(1, 1) % 2, glosses]


def train(s: Settings, every=40):
    torch.manual_seed(s.seed)
    torch.set_float32_matmul_precision("high")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Gloss2Senses(s).to(device)
    objective = CRITERIA[s.criterion]()
    opt = torch.optim.Adam(model.parameters(), lr=s.lr, fused=True)
    kept, begin = [], time.perf_counter()
    for step, (glosses, right) in enumerate(lines(s, device), 1):
        loss = objective(model(glosses).flatten(0, 1), right.flatten(0, 1))
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        kept.append(loss.detach())
        if step % every == 0:
            ms = (time.perf_counter() - begin) / every * 1e3
            print(f"{step:4d}  {torch.stack(kept).mean().item():.5f}  {ms:.0f} ms", flush=True)
            kept.clear()
            begin = time.perf_counter()
        if step == s.steps:
            return


if __name__ == "__main__":
    train(Settings())
