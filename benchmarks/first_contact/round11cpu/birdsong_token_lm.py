"""Language model over birdsong units; a journal collects the loss in nats and in bits.

Units come from a synthetic syrinx: motifs of a few hundred units each, repeated with errors.
"""

import argparse
import math
from collections import defaultdict

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Syrinx:
    def __init__(self, units: int, motifs: int, seed: int):
        self.gen = torch.Generator().manual_seed(seed)
        self.units = units
        self.repertoire = torch.randint(units, (motifs, 48), generator=self.gen)

    def sing(self, birds: int, length: int) -> Tensor:
        motif = torch.randint(len(self.repertoire), (birds,), generator=self.gen)
        offset = torch.randint(48, (birds, 1), generator=self.gen)
        place = (offset + torch.arange(length + 1)) % 48
        song = self.repertoire[motif].gather(1, place)
        slips = torch.rand(song.shape, generator=self.gen) < 0.05
        return torch.where(slips, torch.randint(self.units, song.shape, generator=self.gen), song)


class SongModel(nn.Module):
    def __init__(self, units: int, dim: int):
        super().__init__()
        self.units = nn.Embedding(units, dim)
        self.gru = nn.GRU(dim, dim, batch_first=True)
        self.next_unit = nn.Linear(dim, units)

    def forward(self, song: Tensor) -> Tensor:
        states, _ = self.gru(self.units(song))
        return self.next_unit(states)


class SongJournal:
    """Collects numbers under a name and forgets them when the page is turned."""

    def __init__(self):
        self.columns: dict[str, list] = defaultdict(list)

    def write(self, **numbers) -> None:
        for name, number in numbers.items():
            self.columns[name].append(number)

    def turn_page(self, step: int) -> None:
        line = "  ".join(f"{name} {sum(col) / len(col):.4f}" for name, col in self.columns.items())
        print(f"step {step:4d}  {line}")
        self.columns.clear()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--page", type=int, default=100, help="steps on one page of the journal")
    parser.add_argument("--birds", type=int, default=16)
    parser.add_argument("--length", type=int, default=32)
    parser.add_argument("--units", type=int, default=3000)
    args = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(82)
    syrinx = Syrinx(args.units, motifs=30, seed=83)
    model = SongModel(args.units, dim=48)
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, fused=True)
    journal = SongJournal()
    for step in range(1, args.steps + 1):
        song = syrinx.sing(args.birds, args.length)
        scores = model(song[:, :-1])
        truth = song[:, 1:]
        loss = F.cross_entropy(scores.flatten(0, 1), truth.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        journal.write(loss=loss.item(), bits=loss.item() / math.log(2))
        if step % args.page == 0:
            journal.turn_page(step)


if __name__ == "__main__":
    main()
