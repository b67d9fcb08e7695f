#!/usr/bin/env python
"""Evaluates a reef-fish classifier on a survey stream and watches for label shift.

The monitor tells after each batch how the mean prediction over everything seen so far differs
from the training prior, so that a survey can be stopped early.
"""
import abc
import torch
import torch.nn.functional as F
from torch import nn

CLASSES, FEATURES, ROWS, BATCHES = 96, 256, 384, 500


class Metric(abc.ABC):
    @abc.abstractmethod
    def update(self, probabilities, labels):
        ...

    @abc.abstractmethod
    def compute(self):
        ...


class Accuracy(Metric):
    def __init__(self):
        self.right, self.seen = torch.zeros((), dtype=torch.long), 0

    def update(self, probabilities, labels):
        self.right += (probabilities.argmax(1) == labels).sum()
        self.seen += len(labels)

    def compute(self):
        return self.right / self.seen


class LabelShift(Metric):
    """Divergence of the mean prediction from the prior of the training set."""

    def __init__(self, prior):
        self.log_prior = prior.log()
        self.probabilities = []

    def update(self, probabilities, labels):
        self.probabilities.append(probabilities)  # flaw: memory-growth

    def compute(self):
        mean = torch.cat(self.probabilities).mean(0)  # flaw: memory-growth
        return F.kl_div(self.log_prior, mean, reduction="sum")


class Monitor:
    def __init__(self, tolerance, patience):
        self.tolerance, self.patience = tolerance, patience
        self.before, self.calm = torch.tensor(torch.inf), torch.zeros((), dtype=torch.long)

    def settled(self, value):
        change = (value - self.before).abs()
        self.calm = torch.where(change < self.tolerance, self.calm + 1, 0)
        self.before = value
        return self.calm >= self.patience


class FishNet(nn.Module):
    def __init__(self):
        super().__init__()
        widths = [FEATURES, 768, 768, 512]
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(widths, widths[1:]))
        self.species = nn.Linear(widths[-1], CLASSES)

    def forward(self, x):
        for layer in self.layers:
            x = F.relu(layer(x))
        return self.species(x)


def survey(seed):
    g = torch.Generator().manual_seed(seed)
    looks = torch.randn(CLASSES, FEATURES, generator=g)
    abundance = torch.rand(CLASSES, generator=g).square()
    for _ in range(BATCHES):
        labels = torch.multinomial(abundance, ROWS, replacement=True, generator=g)
        yield torch.randn(ROWS, FEATURES, generator=g).mul_(0.8).add_(looks[labels]), labels


class Evaluation:
    def __init__(self, model, metrics, monitor, report):
        self.model = model.eval()
        self.metrics, self.monitor, self.report = metrics, monitor, report

    def line(self, batch, values, settled):
        numbers = "  ".join(f"{name} {value.item():.5f}" for name, value in values.items())
        print(f"batch {batch:4d}  {numbers}  {'settled' if settled else 'moving'}", flush=True)

    @torch.inference_mode()
    def run(self, batches):
        for number, (sightings, labels) in enumerate(batches, 1):
            probabilities = self.model(sightings).softmax(1)
            for metric in self.metrics.values():
                metric.update(probabilities, labels)
            values = {name: metric.compute() for name, metric in self.metrics.items()}
            settled = self.monitor.settled(values["shift"])
            if number % self.report == 0:
                self.line(number, values, settled)


if __name__ == "__main__":
    torch.manual_seed(2)
    prior = torch.full((CLASSES,), 1 / CLASSES)
    Evaluation(
        FishNet(),
        {"accuracy": Accuracy(), "shift": LabelShift(prior)},
        Monitor(tolerance=1e-6, patience=5),
        report=50,
    ).run(survey(3))
