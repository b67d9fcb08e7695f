"""Tensors that a line copies, and that the edit makes in pinned memory: run before and after it."""

from __future__ import annotations

from typing import Any

import pytest

from warpline.rulekit.fresh import pinned_where_made
from warpline.syntax.edits import Edits, Refused
from warpline.syntax.source import Source
from warpline.text.edits import apply

PINNED = "pin_memory=torch.cuda.is_available()"
HEAD = """\
import queue
import threading

import torch

device = torch.device("cpu")
rows = torch.arange(40.0).reshape(10, 4)
plan = [torch.tensor([1, 2]), torch.tensor([3, 5])]
"""
THREAD = """\
class Feeder(threading.Thread):
    def __init__(self):
        super().__init__(daemon=True)
        self.ready = queue.Queue(maxsize=3)
        self.start()

    def run(self):
        for pick in plan:
            batch = torch.empty(2, 4)
            torch.index_select(rows, 0, pick, out=batch)
            self.ready.put((pick, batch))
        self.ready.put(None)

    def __iter__(self):
        while (item := self.ready.get()) is not None:
            yield item

feed = Feeder()
for turn, (pick, x) in enumerate(feed):
    x = x.to(device)  # here
    print(turn, x.sum())
"""
GENERATOR = """\
def batches(plan):
    for pick in plan:
        batch = torch.zeros((2, 4))
        for at, row in enumerate(pick):
            batch[at] = rows[row]
        yield batch, len(pick)

for size, (x, number) in zip([1, 2], batches(plan)):
    y = x.to(device) * size + number  # here
    print(y.sum(), len(x))
"""
FUNCTION = """\
def gather(pick):
    out = torch.empty(2, 4).fill_(1.0)
    out += rows[pick]
    return pick, out

def run():
    for pick in plan:
        _, x = gather(pick)
        x = x.to(device)  # here
        print(x.sum())

run()
"""
NEXT = """\
def noise():
    torch.manual_seed(0)
    while True:
        yield torch.randn(3)

endless = noise()
for _ in range(2):
    x = next(endless)
    print(x.to(device).sum())  # here
"""


def edited(script: str) -> str:
    source = Source("train.py", HEAD + script)
    line = next(at for at, line in enumerate(source.lines, 1) if "# here" in line)
    edits = Edits(source)
    pinned_where_made(source, line, edits)
    return apply(source.text, edits.fix("pin", "safe").edits)


@pytest.mark.parametrize("script", [THREAD, GENERATOR, FUNCTION, NEXT])
def test_a_tensor_that_is_made_anew_is_made_pinned(script: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = edited(script)
    assert text.count(PINNED) == 1
    assert text.replace(f", {PINNED}", "") == HEAD + script
    printed = []
    for one in (HEAD + script, text):
        names: dict[str, Any] = {}
        exec(one, names)
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1] != ""


@pytest.mark.parametrize(
    ("script", "old", "new"),
    [
        # One buffer, which the next turn fills again.
        (GENERATOR, "    for pick in plan:\n        batch = torch.zeros((2, 4))",
         "    batch = torch.zeros((2, 4))\n    for pick in plan:"),
        (FUNCTION, "    out = torch.empty(2, 4).fill_(1.0)\n", "    out = buffer\n"),
        (THREAD, "batch = torch.empty(2, 4)", "batch = self.buffer"),
        (THREAD, "            batch = torch.empty(2, 4)\n", "            if len(pick) > 2:\n"
         "                batch = torch.empty(2, 4)\n"),
        # It is changed after it was handed on.
        (GENERATOR, "yield batch, len(pick)", "yield batch, len(pick)\n        batch.zero_()"),
        (GENERATOR, "    print(y.sum(), len(x))", "    x[0] = 1.0"),
        (GENERATOR, "    print(y.sum(), len(x))", "    torch.add(rows, 1, out=x)"),
        (FUNCTION, "    return pick, out", "    kept.append(out)\n    return pick, out"),
        (FUNCTION, "    return pick, out", "    last = out\n    return pick, out"),
        # Other memory is copied, or it is pinned or no host's.
        (GENERATOR, "yield batch,", "yield batch * 2,"),
        (GENERATOR, "x.to(device)", "x.to(device, torch.float16)"),
        (GENERATOR, "x.to(device)", "x.half().to(device)"),
        (GENERATOR, "torch.zeros((2, 4))", "torch.zeros((2, 4), device=device)"),
        (GENERATOR, "torch.zeros((2, 4))", "torch.zeros((2, 4), pin_memory=True)"),
        (GENERATOR, "torch.zeros((2, 4))", "numpy.zeros((2, 4))"),
        # It is not known which it is.
        (GENERATOR, "yield batch, len(pick)", "yield batch, len(pick)\n        yield rows, 1"),
        (THREAD, "self.ready.put(None)", "self.ready.put((plan[0], rows))"),
        (NEXT, "for _ in range(2):", "x = rows\nfor _ in range(2):"),
        (THREAD, "enumerate(feed)", "enumerate(other)"),
        # Another process makes it.
        (THREAD, "threading.Thread", "multiprocessing.Process"),
    ],
)  # fmt: skip
def test_other_tensors_stay(script: str, old: str, new: str) -> None:
    assert old in script
    with pytest.raises(Refused):
        edited(script.replace(old, new))
