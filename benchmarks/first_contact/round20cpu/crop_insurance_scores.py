"""Nightly scoring of farm fields: expected hail, frost and drought losses from a wide network over field features."""
import csv
import io
import sys

import torch
from torch import nn

FEATURES = 600
PERILS = ("hail", "frost", "drought")
PORTION = 4  # flaw: small-batch
FIELDS = 2400


class Normaliser(nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.register_buffer("middle", torch.linspace(-0.2, 0.2, columns))
        self.register_buffer("spread", torch.linspace(0.9, 1.1, columns))

    def forward(self, table):
        return (table - self.middle) / self.spread


def wide_network(width, depth):
    sizes = [FEATURES] + [width] * depth
    layers = [Normaliser(FEATURES)]
    for before, after in zip(sizes, sizes[1:]):
        layers += [nn.Linear(before, after), nn.ReLU()]
    layers += [nn.Linear(width, len(PERILS)), nn.Softplus()]
    return nn.Sequential(*layers)


def fields(count):
    generator = torch.Generator().manual_seed(99)
    table = torch.randn(count, FEATURES, generator=generator)
    table[:, ::7] = table[:, ::7].abs()
    return table


class Report:
    """Writes a line for each field and keeps the totals."""

    def __init__(self):
        self.sheet = io.StringIO()
        self.writer = csv.writer(self.sheet)
        self.writer.writerow(("field", *PERILS))
        self.totals = torch.zeros(len(PERILS))
        self.count = 0

    def add(self, losses):
        for line in losses.tolist():
            self.writer.writerow((self.count, *(f"{value:.4f}" for value in line)))
            self.count += 1
        self.totals += losses.sum(0)

    def progress(self):
        means = self.totals / self.count
        return ", ".join(f"{peril} {mean:.4f}" for peril, mean in zip(PERILS, means.tolist()))


def main():
    torch.manual_seed(6)
    network = wide_network(width=2560, depth=5).eval()
    report = Report()
    told = 0
    with torch.inference_mode():
        for portion in fields(FIELDS).split(PORTION):
            report.add(network(portion))
            if report.count - told >= 384:
                told = report.count
                print(f"{report.count} fields: {report.progress()}", file=sys.stderr)
    print(f"{FIELDS} fields, {len(report.sheet.getvalue())} characters; mean losses: {report.progress()}")


if __name__ == "__main__":
    main()
