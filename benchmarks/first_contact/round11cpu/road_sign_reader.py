"""Reads the text on road-sign embeddings: an encoder state seeds a recurrent decoder, letter by letter."""

import string
from typing import NamedTuple

import torch
from torch import Tensor, nn

LETTERS = "^" + string.ascii_uppercase + string.digits + " -"


class Reading(NamedTuple):
    letters: Tensor
    log_likelihood: Tensor


class SignReader(nn.Module):
    def __init__(self, features: int, hidden: int):
        super().__init__()
        self.seed = nn.Linear(features, hidden)
        self.letter = nn.Embedding(len(LETTERS), hidden)
        self.cell = nn.GRUCell(hidden, hidden)
        self.next = nn.Linear(hidden, len(LETTERS))

    @torch.inference_mode()
    def read(self, signs: Tensor, longest: int) -> Reading:
        state = torch.tanh(self.seed(signs))
        letter = torch.zeros(len(signs), dtype=torch.long)
        letters = torch.empty(len(signs), longest, dtype=torch.long)
        total = torch.zeros(len(signs))
        for place in range(longest):
            state = self.cell(self.letter(letter), state)
            best, letter = self.next(state).log_softmax(dim=1).max(dim=1)
            letters[:, place] = letter
            total += best
        return Reading(letters, total)


def camera_feed(frames: int, signs: int, features: int, seed: int):
    gen = torch.Generator().manual_seed(seed)
    for _ in range(frames):
        yield torch.randn(signs, features, generator=gen)


def spell(letters: Tensor) -> str:
    return "".join(LETTERS[i] for i in letters.tolist())


def main(frames: int = 560, signs: int = 96, features: int = 192) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(120)
    reader = SignReader(features, hidden=256).eval()
    seen = 0
    likelihood = 0.0
    for number, batch in enumerate(camera_feed(frames, signs, features, seed=121), start=1):
        reading = reader.read(batch, longest=14)
        seen += len(reading.letters)
        likelihood += reading.log_likelihood.sum().item()
        if number % 140 == 0:
            print(f"{seen:6d} signs, mean log likelihood {likelihood / seen:.4f}, last {spell(reading.letters[-1])!r}")


if __name__ == "__main__":
    main()
