"""Transcribes knotted cords (quipus) into catalogue words with a GRU."""
import argparse
import os
from dataclasses import dataclass

import torch
from torch import nn

tiny = os.environ.get("TINY") == "1"


@dataclass
class Settings:
    glossary: int = 300 if tiny else 9000
    cords: int = 4 if tiny else 16
    knots: int = 8 if tiny else 24
    width: int = 64
    rate: float = 2e-3


class Objective:
    """Mean surprise per knot, in nats."""

    def __init__(self, glossary):
        self.glossary = glossary

    def __call__(self, scores, words):
        surprise = scores.logsumexp(-1, keepdim=True) - scores  # flaw: hand-written-loss
        chosen = nn.functional.one_hot(words, self.glossary).to(scores.dtype)  # flaw: hand-written-loss
        return torch.einsum("nkw,nkw->nk", surprise, chosen).mean()  # flaw: hand-written-loss


class Transcriber(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.pull = nn.GRU(12, cfg.width, batch_first=True)
        self.words = nn.Linear(cfg.width, cfg.glossary)

    def forward(self, cords):
        return self.words(self.pull(cords)[0])


def run(cfg, steps):
    torch.manual_seed(11)
    net, objective = Transcriber(cfg), Objective(cfg.glossary)
    optimizer = torch.optim.AdamW(net.parameters(), lr=cfg.rate, fused=True)
    cords = torch.randn(64, cfg.knots, 12)
    words = (cords[..., :3].abs().sum(-1) * cfg.glossary / 9).long().clamp_(max=cfg.glossary - 1)
    done = 0
    while done < steps:
        for rows in torch.randperm(64).split(cfg.cords):
            loss = objective(net(cords[rows]), words[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            done += 1
        if done % 40 == 0:
            print(done, round(loss.item(), 3))
    print("end", round(loss.item(), 3))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=4 if tiny else 120)
    run(Settings(), parser.parse_args().steps)
