"""Pieces of one batch whose gradients are added up: larger ones, where that is the same."""

from __future__ import annotations

import pytest

from tests.annotated import read_example, texts
from warpline.diagnosis.diagnose import diagnose
from warpline.text.edits import apply

ONE = ["PIECE = 32\n"]
FACTS = {
    "top": "PIECE = 8", "more": "pass", "cut": "pieces = batch.split(PIECE)", "over": "for x in pieces",
    "take": "pass", "loss": "loss_of(model(x)) / len(pieces)",
    "back": "loss.backward()", "total": 32,
    "sliced": 32, "in_loop": "pass", "seen": 8, "calls": 4, "peak": 4_000_000_000, "argv": "[]",
}  # fmt: skip
CODE = """\
#> steps step_ms=40 device_busy_percent=20; memory peak_bytes={peak}; manifest argv='{argv}'
import argparse
import itertools
import math
import os
from dataclasses import dataclass
import torch

small = os.environ.get("SMALL") == "1"
{top}
{more}

def update(batch, wanted):
    {cut}  #> cost cpu_ms=0.1 calls=1
    #^ op aten::split shapes=[[{total},64],[],[]]
    {over}:
        {take}  #> cost step_ms=0.1 cpu_ms=0.1 device_ms=0.1 calls={calls}
        #^ op aten::slice shapes=[[{sliced},64],[],[]]
        loss = {loss}
        #^ cost step_ms=24 device_ms=4 idle_ms=20 cpu_ms=24 launches=2000 calls={calls}
        #^ op aten::mm shapes=[[{seen},64],[64,64]]
        {back}  #> cost step_ms=14 device_ms=2 idle_ms=12 cpu_ms=14 launches=1000 calls={calls}
        {in_loop}
    optimizer.step()  #> cost step_ms=2 device_ms=1 idle_ms=1 cpu_ms=2 launches=10 calls=1
"""


def edited(code: str = CODE, **facts: object) -> str | None:
    """The script with the edit, its annotations left out; None where nothing is offered."""
    example = read_example(code.format(**FACTS | facts))
    found = [one for one in diagnose(example.profile, texts(example)).findings if one.rule == "small-batch"]
    return apply(example.text, found[0].fixes[0].edits) if found and found[0].fixes else None


@pytest.mark.parametrize(
    ("facts", "made"),
    [
        ({}, ONE),
        ({"top": "PIECE = 2 if small else 8"}, ["PIECE = 2 if small else 32\n"]),
        ({"top": "PIECE = 8 if small else 8 * 8"}, ["PIECE = 32 if small else 8 * 8\n"]),
        ({"cut": "pieces = torch.split(batch, PIECE, dim=0)"}, ONE),
        ({"cut": "pieces = batch.split(8)", "top": "pass"}, ["batch.split(32)"]),
        ({"cut": "pass", "over": "for x in batch.split(PIECE)", "loss": "model(x) / (32 // PIECE)"}, ONE),
        ({"cut": "xs, ys = batch.split(PIECE), wanted.split(PIECE)", "over": "for x, y in zip(xs, ys)",
          "loss": "loss_of(model(x), y) / len(xs)"}, ONE),
        ({"cut": "xs, ys = batch.split(8), wanted.split(8)",
          "over": "for i, (x, y) in enumerate(zip(xs, ys))",
          "loss": "loss_of(model(x), y) / len(xs)", "top": "pass"}, ["batch.split(32), wanted.split(32)"]),
        ({"loss": "loss_of(model(x))", "back": "(loss / len(pieces)).backward()"}, ONE),
        ({"loss": "loss_of(model(x))", "back": "scaler.scale(loss / len(pieces)).backward()"}, ONE),
        ({"loss": "loss_of(model(x))", "back": "loss.div(len(pieces)).backward()"}, ONE),
        ({"loss": "loss_of(model(x))", "take": "share = 1 / len(pieces)",
          "back": "(share * loss).backward()"},
         ONE),
        ({"loss": "model(x).a / len(pieces) + 0.1 * model(x).b / len(pieces)"}, ONE),
        ({"loss": "(model(x).a + 0.1 * model(x).b) / len(pieces)"}, ONE),
        ({"more": "PIECES = 4", "loss": "loss_of(model(x)) / PIECES"}, ["PIECE = 32\n", "PIECES = 1\n"]),
        ({"more": "PIECES = 2 if small else 4", "loss": "loss_of(model(x)) / PIECES"},
         ["PIECE = 32\n", "PIECES = 2 if small else 1\n"]),
        ({"loss": "loss_of(model(x)) / 4"}, ["PIECE = 32\n", "loss_of(model(x)) / 1\n"]),
        ({"more": "BATCH = 32\nPIECES = BATCH // PIECE", "loss": "loss_of(model(x)) / PIECES"},
         ["PIECE = 32\n", "PIECES = BATCH // PIECE\n"]),
        ({"more": "BATCH = 32\nassert BATCH % PIECE == 0",
          "loss": "loss_of(model(x)) / max(1, BATCH // PIECE)"},
         ONE),
        ({"loss": "loss_of(model(x)) / math.ceil(len(batch) / PIECE)"}, ONE),
        ({"more": "def cut(x, size):\n    for at in range(0, len(x), size):\n        yield x[at : at + size]",
          "cut": "x = 0", "over": "for x in cut(batch, PIECE)",
          "loss": "model(x) * len(x) / len(batch)"}, ONE),
        # Weighted by rows: the last piece may be smaller.
        ({"loss": "loss_of(model(x)) * len(x) / len(batch)", "total": 30}, ONE),
        ({"loss": "loss_of(model(x)) * len(x) / len(batch)", "cut": "pass", "total": 30, "sliced": 30,
          "over": "for x in batch.split(PIECE)"}, ONE),
        ({"loss": "loss_of(model(x)) * (x.shape[0] / batch.shape[0])", "total": 30}, ONE),
        ({"take": "part = x.size(0) / batch.size(0)",
          "loss": "part * loss_of(model(x))", "total": 30}, ONE),
        # So do sums that all are divided by the same.
        ({"loss": "loss_of(model(x), reduction='sum') / len(batch)", "total": 30, "sliced": 30}, ONE),
        ({"loss": "(model(x) - x).square().sum() / 32"}, ONE),
        ({"in_loop": "if i == 0: print(loss)", "over": "for i, x in enumerate(pieces)"}, ONE),
        ({"in_loop": "model.sync = i == len(pieces) - 1",
          "over": "for i, x in enumerate(pieces)"}, ONE),
        ({"in_loop": "total = total + loss.detach()"}, ONE),
        ({"take": "x = x.to(device)"}, ONE),
        ({"take": "x, y = [one.to(device) for one in (x, x)]"}, ONE),
        ({"loss": "loss_of(model(x), noise) / len(pieces)", "in_loop": "noise = next(draws)"}, ONE),
        ({"cut": "pass", "over": "for at in range(0, 32, PIECE)", "take": "x = batch[at : at + PIECE]",
          "loss": "loss_of(model(x)) / (32 // PIECE)"}, ONE),
        ({"cut": "pieces = 32 // PIECE", "over": "for at in range(0, len(batch), PIECE)",
          "take": "x, y = batch[at : at + PIECE], wanted[at : at + PIECE]",
          "loss": "loss_of(model(x), y) / pieces"}, ONE),
        ({"cut": "pieces = len(batch) // PIECE", "over": "for i in range(pieces)",
          "take": "x = batch[i * PIECE : (i + 1) * PIECE]", "loss": "loss_of(model(x)) / pieces"},
         ONE),
    ],
)  # fmt: skip
def test_as_many_rows_in_fewer_pieces(facts: dict[str, object], made: list[str]) -> None:
    text = edited(**facts)
    assert text is not None
    assert all(one in text for one in made)


@pytest.mark.parametrize(
    "facts",
    [
        {"loss": "loss_of(model(x))"},  # the gradients would be smaller
        {"loss": "loss_of(model(x)) / 5"},  # it would stay
        {"loss": "loss_of(model(x)) / len(batch)"},
        {"loss": "loss_of(model(x)) / len(batch)", "cut": "pass", "over": "for x in batch.split(PIECE)"},
        {"loss": "loss_of(model(x)) / len(pieces)", "take": "out, state = model(x, state)",
         "back": "(loss + out.mean() / len(pieces)).backward()"},  # the state of the rows before
        {"loss": "loss_of(out) / len(pieces)", "take": "out, state = model(x, state)",
         "in_loop": "state = state.detach()"},
        {"in_loop": "clip_grad_norm_(parameters, 1.0)"},  # of each piece alone
        {"in_loop": "kept.append(weight.grad.clone())"},
        {"loss": "loss_of(model(x)) / len(pieces) / len(pieces)"},
        {"loss": "loss_of(model(x)) / len(pieces) + penalty(model)"},
        {"loss": "loss_of(model(x)) * len(x) / len(batch) / len(pieces)"},
        {"loss": "loss_of(model(x)) * len(x) / PIECE"},
        {"loss": "loss_of(model(x), reduction='sum') / len(pieces)"},
        {"loss": "loss_of(model(x), reduction='sum')"},
        {"loss": "loss_of(model(x), reduction='sum') / len(x)"},
        {"loss": "loss_of(model(x), reduction='sum') * len(x) / len(batch)"},
        {"loss": "loss_of(model(x), reduction='sum') / len(batch) + weight.abs().sum() / len(batch)"},
        {"loss": "loss_of(model(x), reduction=how) / len(batch)"},
        {"loss": "loss_of(model(x))", "in_loop": "shown += loss.item() / len(pieces)"},
        {"loss": "loss_of(model(x))", "in_loop": "shown += loss.item() * len(x) / len(batch)"},
        {"loss": "loss_of(model(x) / 4)"},  # another 4
        {"total": 30, "sliced": 30},  # the last is smaller, and weighs as much as the others
        {"total": 64, "sliced": 64},
        {"in_loop": "optimizer.step()"},  # an update each
        {"in_loop": "scheduler.step()"},
        {"seen": 16},
        {"peak": 100_000_000_000},  # larger ones do not fit
        {"more": "noise = torch.randn(PIECE, 3)"},
        {"more": "rate = 0.01 * PIECE"},
        {"more": "PIECES = 4\nrate = 0.01 * PIECES", "loss": "loss_of(model(x)) / PIECES"},
        {"cut": "pieces = batch.split(PIECE, dim=1)"},
        {"cut": "pieces = batch.split([8, 8, 8, 8])"},
        {"take": "kept.append(pieces[0])"},
        {"take": "rate = 0.1 * len(pieces)"},
        {"over": "for x, noise in zip(pieces, noises)"},  # one for each
        {"over": "for i, x in enumerate(pieces)", "take": "noise = noises[i]"},
        {"over": "for i, x in enumerate(pieces)", "in_loop": "if i > 1: break"},
        {"take": "target = torch.arange(len(x))"},  # one of its rows is right, the others are wrong
        {"take": "scores = x @ x.T"},
        {"take": "scores = torch.mm(x, other.t())"},
        {"take": "apart = x[:, None] - x[None]"},
        {"take": "x = (x - x.mean()) / x.std()"},
        {"more": "parser = argparse.ArgumentParser()\nparser.add_argument('--piece', type=int, default=8)\n"
                 "args = parser.parse_args()", "cut": "pieces = batch.split(args.piece)",
         "argv": '["--piece","8"]'},
        {"cut": "pass", "over": "for at in range(0, 32, PIECE)", "take": "x = batch[at : at + PIECE]",
         "loss": "loss_of(model(x)) / (32 // PIECE)", "in_loop": "seen.append(at)"},
        {"cut": "pass", "over": "for at in range(0, 32, PIECE)", "take": "x = batch[at : at + PIECE]",
         "loss": "loss_of(model(x)) / (30 // PIECE)"},
        {"cut": "pass", "over": "for x in itertools.islice(batches, PIECE)"},
    ],
)  # fmt: skip
def test_what_would_change_is_left_alone(facts: dict[str, object]) -> None:
    assert edited(**facts) is None


HELD = """\
class Learner:
    rows = 2 if small else 8

    def __init__(self, plan):
        self.plan = plan

@dataclass
class Plan:
    piece: int = 8

parser = argparse.ArgumentParser()
parser.add_argument("--each", type=int, default=8)
args = parser.parse_args()
settings = {{"together": 8}}
"""


@pytest.mark.parametrize(
    ("held", "made"),
    [
        ("Learner.rows", "    rows = 2 if small else 32\n"),
        ("plan.piece", "    piece: int = 32\n"),
        ("args.each", "type=int, default=32)"),
        ('settings["together"]', '{"together": 32}'),
    ],
)
def test_where_the_size_is_held(held: str, made: str) -> None:
    text = edited(CODE.replace("{top}", HELD), cut=f"pieces = batch.split({held})")
    assert text is not None
    assert made in text
