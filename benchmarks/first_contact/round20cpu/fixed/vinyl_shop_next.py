"""Suggestions of a record shop's website: reads the last pages of each visitor's session, ranks all records."""
import heapq
import random

import torch
from torch import nn

RECORDS, PAGES, WIDTH = 5000, 24, 64
VISITS, GROUP, SHOWN = 25600, 64, 8


class SessionModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.records = nn.Embedding(RECORDS, WIDTH)
        self.reader = nn.GRU(WIDTH, WIDTH, batch_first=True)
        self.taste = nn.Linear(WIDTH, WIDTH)
        self.shelf = nn.Linear(WIDTH, RECORDS)

    def read(self, pages):
        states, _ = self.reader(self.records(pages))
        return torch.relu(self.taste(states[:, -1]))

    def forward(self, pages):
        return self.shelf(self.read(pages))


class Desk:
    """Answers groups of visitors, and counts what it shows."""

    def __init__(self, model):
        self.model = model
        self.shown = {}

    @torch.inference_mode()
    def suggest(self, pages):
        ranking = self.model(pages)
        now = ranking
        now = now.scatter(1, pages, -torch.inf)
        return now.topk(SHOWN).indices

    def answer(self, group):
        lists = self.suggest(torch.tensor(group)).tolist()
        for records in lists:
            for record in records:
                self.shown[record] = self.shown.get(record, 0) + 1
        return lists


def visits(count, seed):
    dice = random.Random(seed)
    for _ in range(count):
        genre = dice.randrange(50) * 100
        yield [genre + dice.randrange(100) if dice.random() < 0.8 else dice.randrange(RECORDS) for _ in range(PAGES)]


def groups(stream, size):
    group = []
    for visit in stream:
        group.append(visit)
        if len(group) == size:
            yield group
            group = []
    if group:
        yield group


if __name__ == "__main__":
    torch.manual_seed(31)
    desk = Desk(SessionModel().eval())
    for number, group in enumerate(groups(visits(VISITS, seed=4), GROUP), 1):
        lists = desk.answer(group)
        if number % 70 == 0:
            print(f"group {number}: first visitor sees {lists[0]}")
    popular = heapq.nlargest(5, desk.shown.items(), key=lambda pair: pair[1])
    print(f"{len(desk.shown)} records were shown; most often: {popular}")
