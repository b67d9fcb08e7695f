"""Tensors that grow by concatenation in a loop, in the ways that a first piece is told from the others."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest

from warpline.rulekit.joined import concatenated_once, is_read, join_in_loop
from warpline.syntax.source import Source
from warpline.text.edits import apply

torch = pytest.importorskip("torch")

CODE = """\
import torch

def tracks(start, rounds):
    trail = None
    state = start
{loop}
    return trail
"""
ONE_LINE = """
for _ in range(rounds):
    state = state * 0.5 + 1
    row = state[None]
    trail = {}
"""
BRANCHES = """
for t{names} in {over}:
    state = state * 0.5 + 1
    if {test}:
        trail = {first}
    else:
        trail = {second}
"""
NEW, JOINED = "state[None]", "torch.cat((trail, state[None]), 0)"


def branches(test: str, first: str = NEW, second: str = JOINED, over: str = "range(rounds)") -> str:
    names = ", _" if over.startswith("enumerate") else ""
    return BRANCHES.format(test=test, first=first, second=second, over=over, names=names)


def edited(loop: str) -> tuple[str, str | None]:
    """The script, and what the edit makes of it; None where the tensor is not known to grow, or is read."""
    text = CODE.format(loop=textwrap.indent(loop, "    "))
    line = next(at for at, one in enumerate(text.splitlines(), 1) if "torch.cat" in one)
    growth = join_in_loop(Source("run.py", text), line)
    found = growth is not None and not is_read(growth)
    return text, apply(text, concatenated_once([growth]).edits) if growth is not None and found else None


def outcome(code: str) -> Any:
    scope: dict[str, Any] = {}
    exec(code, scope)
    return scope["tracks"](torch.arange(6.0).view(2, 3), 4)


@pytest.mark.parametrize(
    "loop",
    [
        ONE_LINE.format("row if trail is None else torch.cat((trail, row))"),
        ONE_LINE.format("torch.cat([trail, row], dim=0) if trail is not None else row"),
        branches("trail is None"),
        branches("trail is not None", JOINED, NEW),
        branches("t == 0"),
        branches("not t"),
        branches("t > 0", JOINED, NEW),
        branches("t", JOINED, NEW),
        branches("t < 1", over="enumerate(range(rounds))"),
    ],
)
def test_the_pieces_are_concatenated_once(loop: str) -> None:
    text, new = edited(loop)
    assert new is not None
    assert "append" in new
    assert new.count("torch.cat") == 1
    assert " if " not in new
    assert torch.equal(outcome(new), outcome(text))


@pytest.mark.parametrize(
    "loop",
    [
        ONE_LINE.format("row * 2 if trail is None else torch.cat((trail, row))"),  # another first piece
        ONE_LINE.format("row if state.sum() > 3 else torch.cat((trail, row))"),  # begins anew at any time
        ONE_LINE.format("torch.cat((trail, row)) if trail is None else row"),
        branches("t == 0", second="torch.cat((trail, trail[-1:] + state))"),  # the piece needs the others
        branches("t == 1"),
        branches("t == 0", over="range(1, rounds)"),
        branches("t == 0") + "    if state.sum() < 0:\n        continue\n",
        branches("t == 0") + "    t = t + 1\n",
        "for t in range(rounds):\n    if state.sum() > 3:\n" + textwrap.indent(
            "state = state + t\nif not t:\n    trail = state\nelse:\n    trail = torch.cat([trail, state])\n",
            "        ",
        ),
    ],
)  # fmt: skip
def test_other_loops_are_left_alone(loop: str) -> None:
    assert edited(loop)[1] is None
