"""Masked modelling of notes: fills in what a copyist left out of a score."""
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F


@dataclass
class Score:
    notes: int = 2048
    bars: int = 64
    pieces: int = 1024
    hidden: int = 10  # notes hidden in a piece

    @property
    def blank(self):
        return self.notes


class Copyist(nn.Module):
    """Encoder of notes. The scores for each note come from `spell`."""

    def __init__(self, score, width=128, heads=4, layers=2):
        super().__init__()
        self.note = nn.Embedding(score.notes + 8, width)
        self.place = nn.Parameter(0.02 * torch.randn(score.bars, width))
        layer = nn.TransformerEncoderLayer(
            width, heads, 4 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, layers, norm=nn.LayerNorm(width), enable_nested_tensor=False)
        self.spell = nn.Linear(width, score.notes)

    def forward(self, ids):
        return self.encoder(self.note(ids) + self.place)


class Trainer:
    def __init__(self, score, seed=14, batch=16, lr=1e-3):
        torch.manual_seed(seed)
        self.score, self.batch = score, batch
        self.pieces = self.compose()
        self.model = Copyist(score)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=lr, fused=True)

    def compose(self):
        """Pieces that walk through the notes by intervals of their own."""
        s = self.score
        start = torch.randint(s.notes, (s.pieces, 1))
        stride = torch.randint(1, 6, (s.pieces, 1))
        return (start + stride * torch.arange(s.bars) + torch.randint(2, (s.pieces, s.bars))) % s.notes

    def hide(self, ids):
        places = torch.rand(ids.shape).topk(self.score.hidden, dim=1).indices
        hidden = torch.zeros(ids.shape, dtype=torch.bool).scatter_(1, places, True)
        return hidden, ids.masked_fill(hidden, self.score.blank)

    def loss(self, ids):
        hidden, shown = self.hide(ids)
        states = self.model(shown)
        spelled = self.model.spell(states[hidden])
        return F.cross_entropy(spelled, ids[hidden])

    def update(self, ids):
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss(ids)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def batches(self):
        while True:
            for rows in torch.randperm(len(self.pieces)).split(self.batch):
                yield self.pieces[rows]

    def run(self, updates, every):
        mean = torch.zeros(())
        for number, ids in zip(range(1, updates + 1), self.batches()):
            mean += self.update(ids) / every
            if number % every == 0:
                print(f"update {number:4d}  loss {mean.item():.4f}", flush=True)
                mean.zero_()


if __name__ == "__main__":
    Trainer(Score()).run(updates=200, every=25)
