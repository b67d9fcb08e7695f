"""Tags discharge letters with diagnosis codes: thousands of labels, several per letter."""

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn


class Criterion(Protocol):
    def __call__(self, scores: Tensor, tags: Tensor) -> Tensor: ...


@dataclass
class Letters:
    words: Tensor
    codes: Tensor

    @classmethod
    def synthetic(cls, n: int, words: int, vocab: int, codes: int, seed: int) -> "Letters":
        gen = torch.Generator().manual_seed(seed)
        present = torch.randint(codes, (n, 6), generator=gen)
        text = torch.randint(vocab, (n, words), generator=gen)
        text[:, ::8] = (present.repeat(1, words)[:, : text[:, ::8].shape[1]] * 7) % vocab
        return cls(text, present)

    def batch(self, rows: Tensor, n_codes: int) -> tuple[Tensor, Tensor]:
        tags = torch.zeros(len(rows), n_codes).scatter_(1, self.codes[rows], 1.0)
        return self.words[rows], tags


def tag_likelihood(scores: Tensor, tags: Tensor) -> Tensor:
    """Negative log likelihood of independent tags, in a form that does not overflow."""
    peak = scores.clamp(min=0)  # flaw: hand-written-loss
    tail = torch.log1p(torch.exp(-scores.abs()))  # flaw: hand-written-loss
    return (peak - scores * tags + tail).mean()  # flaw: hand-written-loss


class CodeTagger(nn.Module):
    def __init__(self, vocab: int, codes: int, dim: int):
        super().__init__()
        self.words = nn.Embedding(vocab, dim)
        self.context = nn.Conv1d(dim, dim, 5, padding=2)
        self.squeeze = nn.Linear(dim, 24)
        self.codes = nn.Linear(24, codes)
        nn.init.constant_(self.codes.bias, -6.0)

    def forward(self, words: Tensor) -> Tensor:
        x = self.words(words).transpose(1, 2)
        x = torch.tanh(self.context(x)).amax(2)
        return self.codes(torch.relu(self.squeeze(x)))


class Experiment:
    def __init__(self, criterion: Criterion, n_codes: int = 6000, vocab: int = 2000, batch: int = 80):
        self.criterion = criterion
        self.n_codes, self.batch = n_codes, batch
        self.letters = Letters.synthetic(4000, 32, vocab, n_codes, seed=90)
        self.model = CodeTagger(vocab, n_codes, dim=64)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=2e-3, fused=True)

    def run(self, steps: int, every: int) -> None:
        for step in range(1, steps + 1):
            rows = torch.randint(len(self.letters.words), (self.batch,))
            words, tags = self.letters.batch(rows, self.n_codes)
            loss = self.criterion(self.model(words), tags)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            if step % every == 0:
                print(f"{step:5d}  likelihood {loss.item():.5f}")


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(90)
    Experiment(tag_likelihood).run(steps=700, every=175)
