"""The edit that makes one loader for all epochs."""

from __future__ import annotations

import pytest

from tests.annotated import read_example, texts
from warpline.rulekit import Context
from warpline.rules.loader_workers_restart import LoaderWorkersRestart
from warpline.text.edits import apply

SCRIPT = """\
from torch.utils.data import DataLoader, Dataset, Sampler

def pack(rows):
    return rows

class Turns(Sampler):
    def __init__(self, seed):
        self.seed = seed

    def __iter__(self):
        self.seed += 1
        return iter(range(self.seed))

class Rows(Dataset):
    def __init__(self, name):
        self.name = self.seen = name

    def __getitem__(self, row):
        return row, self.name, self.seen

    {method}

class Feed({base}):
    def __init__(self, rows, size):
        self.rows, self.size, self.turns = rows, size, Turns(3)

    {above}
    def batches(self{parameter}):
        {first}
        return DataLoader({rows}, self.size, num_workers=2, collate_fn=pack, sampler=self.turns)
        #^ site loader num_workers=2 persistent_workers=false batches_per_epoch=4 epochs_started=9 made=9
        #^ also dataset_file=/example/train.py dataset_line=18

def fit(feed, size):
    for epoch in range(90):
        {begin}
        losses = [train(batch) for batch in {call}]
        #^ cost cpu_ms=30 idle_ms=30 loader_ms=30 device_ms=20; use loader
        {end}

{later}
"""
WHOLE = {
    "method": "def __len__(self):\n        return 9",
    "base": "",
    "above": "",
    "parameter": "",
    "first": "",
    "rows": "self.rows",
    "begin": "",
    "call": "feed.batches()",
    "end": "show(losses)",
    "later": "fit(Feed(Rows('a'), 8), 8)",
}


def edited(parts: dict[str, str]) -> str | None:
    """The script with the edit; None where none is offered."""
    example = read_example(SCRIPT.format(**WHOLE | parts))
    (draft,) = LoaderWorkersRestart().find(Context(example.profile, texts(example)))
    assert draft.message.startswith("A new loader is made for each epoch.")
    assert all(fix.applicability == "unsafe" for fix in draft.fixes)
    return apply(example.text, draft.fixes[0].edits) if draft.fixes else None


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"parameter": ", size", "call": "feed.batches(size)"},
        {"later": "feed.other.first = 0"},
    ],
)
def test_the_same_loader_is_made_once(parts: dict[str, str]) -> None:
    after = edited(parts) or ""
    call = parts.get("call", "feed.batches()")
    assert f"    loader = {call}\n    for epoch in range(90):\n" in after
    assert "for batch in loader]" in after
    assert "sampler=self.turns, persistent_workers=True)" in after


@pytest.mark.parametrize(
    "parts",
    [
        {"parameter": ", epoch", "call": "feed.batches(epoch)"},
        {"begin": "feed = Feed(Rows(epoch), 8)"},
        {"end": "feed.size += 1"},
        {"end": "feed.rows.name = epoch"},
        {"method": "def turn(self):\n        self.seen = 2"},
        {"rows": "Rows(self.size)"},
        {"rows": "latest", "later": "latest = Rows('a')\nlatest = Rows('b')"},
        {"first": "self.size = 2 * self.size"},
        {"above": "@cached"},
        {"later": "feed.batches()"},
        {"method": "def __init__(self):\n        self.name = 'b'"},
    ],
)
def test_loaders_that_may_differ_are_made_again(parts: dict[str, str]) -> None:
    assert edited(parts) is None


LOOP = """\
from torch.utils.data import DataLoader, Dataset

class Rows(Dataset):
    def __init__(self, name):
        self.name = name

    def __getitem__(self, row):
        return row, self.name

    {method}

def fit(rows, size, plan):
    for epoch in range(90):
        {begin}
        {made}
        #^ site loader num_workers=2 persistent_workers=false batches_per_epoch=4 epochs_started=9 made=9
        #^ also dataset_file=/example/train.py dataset_line=7; cost cpu_ms=0.1
        {end}
            train(batch)  #> cost cpu_ms=30 idle_ms=30 loader_ms=30 device_ms=20; use loader
"""
TURNS = {
    "method": "def __len__(self):\n        return 9",
    "begin": "",
    "made": "feed = DataLoader(rows, size, num_workers=2, drop_last=True)",
    "end": "for batch in feed:",
}


def taken_out(parts: dict[str, str]) -> str | None:
    example = read_example(LOOP.format(**(TURNS | parts)))
    (draft,) = LoaderWorkersRestart().find(Context(example.profile, texts(example)))
    assert draft.line == next(
        n for n, line in enumerate(example.text.splitlines(), 1) if "DataLoader(" in line
    )
    return apply(example.text, draft.fixes[0].edits) if draft.fixes else None


@pytest.mark.parametrize(
    ("parts", "made", "left"),
    [
        ({}, "    feed = DataLoader(rows, size, num_workers=2, drop_last=True, persistent_workers=True)", ""),
        (
            {"made": "feed = DataLoader(rows, size, persistent_workers=False, num_workers=2,)"},
            "    feed = DataLoader(rows, size, num_workers=2, persistent_workers=True)",
            "",
        ),
        (
            {"made": "feed = iter(DataLoader(rows, size, num_workers=2))"},
            "    loader = DataLoader(rows, size, num_workers=2, persistent_workers=True)",
            "        feed = iter(loader)",
        ),
        (
            {"made": "for batch in DataLoader(rows, size, num_workers=2):", "end": "    show(batch)"},
            "    loader = DataLoader(rows, size, num_workers=2, persistent_workers=True)",
            "        for batch in loader:",
        ),
    ],
)
def test_the_constructor_goes_before_the_loop(parts: dict[str, str], made: str, left: str) -> None:
    text = taken_out(parts)
    assert text is not None
    lines = text.splitlines()
    at = lines.index(made)
    assert lines[at + 1] == "    for epoch in range(90):"
    assert not left or left in lines[at + 2 :]
    assert text.count("DataLoader(") == 1
    compile(text, "train.py", "exec")


@pytest.mark.parametrize(
    "parts",
    [
        {"begin": "size = 8 + epoch"},
        {"begin": "rows = Rows(epoch)"},
        {"made": "feed = DataLoader(Rows(epoch), size, num_workers=2)"},
        {"made": "feed = DataLoader(rows, plan[epoch], num_workers=2)"},
        {"made": "feed = DataLoader(rows, size, num_workers=2, **plan)"},
        {"made": "feed = DataLoader(rows, plan.size, num_workers=2)", "begin": "plan.size = epoch"},
        {"begin": "rows.turn(epoch)", "method": "def turn(self, to):\n        self.name = to"},
    ],
)
def test_loaders_that_differ_from_epoch_to_epoch_are_made_in_each(parts: dict[str, str]) -> None:
    assert taken_out(parts) is None
