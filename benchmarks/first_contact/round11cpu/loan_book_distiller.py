"""Distils a large tabular teacher into a small student; the teacher's opinions are computed once."""

from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class LoanBook:
    def __init__(self, loans: int, columns: int, seed: int):
        self.gen = torch.Generator().manual_seed(seed)
        self.rows = torch.randn(loans, columns, generator=self.gen)

    def __len__(self) -> int:
        return len(self.rows)

    def shuffled(self, size: int):
        yield from torch.randperm(len(self), generator=self.gen).split(size)


def perceptron(columns: int, width: int, depth: int, grades: int) -> nn.Sequential:
    layers: list[nn.Module] = [nn.Linear(columns, width), nn.ReLU()]
    for _ in range(depth - 1):
        layers += [nn.Linear(width, width), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(width, grades))


class Distillation:
    temperature = 2.0

    def __init__(self, book: LoanBook, teacher: nn.Module, student: nn.Module):
        self.book, self.teacher, self.student = book, teacher, student
        self.optimizer = torch.optim.AdamW(student.parameters(), lr=1e-3, fused=True)
        self.callbacks = []

    @cached_property
    def opinions(self) -> Tensor:
        with torch.inference_mode():
            parts = [self.teacher(rows) for rows in self.book.rows.split(1024)]
            opinion = (torch.cat(parts) * 4 / self.temperature).log_softmax(dim=1)
        return opinion.clone()

    def epoch(self, size: int) -> float:
        total, batches = 0.0, 0
        for rows in self.book.shuffled(size):
            guess = (self.student(self.book.rows[rows]) / self.temperature).log_softmax(dim=1)
            loss = F.kl_div(guess, self.opinions[rows], reduction="batchmean", log_target=True)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item()
            batches += 1
        return total / batches

    def run(self, epochs: int, size: int) -> None:
        for number in range(epochs):
            divergence = self.epoch(size)
            for callback in self.callbacks:
                callback(number, divergence)


def print_every_other(number: int, divergence: float) -> None:
    if number % 2:
        print(f"epoch {number + 1}: divergence {divergence:.5f}")


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(160)
    book = LoanBook(loans=32_768, columns=64, seed=161)
    work = Distillation(book, perceptron(64, 384, 3, grades=7), perceptron(64, 256, 4, grades=7))
    work.callbacks.append(print_every_other)
    work.run(epochs=14, size=512)


if __name__ == "__main__":
    main()
