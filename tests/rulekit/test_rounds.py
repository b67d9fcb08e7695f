"""Loops whose rounds are in a function that they call."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.annotated import FILE, read_example, texts
from tests.rulekit.graph import recording
from tests.rulekit.graph.recording import recorded
from warpline.model.profile import MOST_OPS_A_LINE
from warpline.rulekit import Context
from warpline.rulekit.rounds import rounds
from warpline.rulekit.vectorised import at_once
from warpline.syntax.edits import Refused
from warpline.wire.dataflow import Dataflow

torch = pytest.importorskip("torch")

SCRIPT = """\
def overlap(box, boxes):
    low = torch.maximum(box, boxes)  #> cost step_ms=9 calls=200; op aten::maximum count=200 cpu_ms=9

def all_overlaps(a, b):
    rows = []
    for i in range(len(a)):
        rows.append(overlap({argument}, b))  #> cost step_ms=2 calls=200; op aten::select count=200 cpu_ms=1
        #^ cost calls=200
    return torch.stack(rows)
"""


def lines(argument: str) -> list[set[int]]:
    """Of each loop, its lines."""
    example = read_example(SCRIPT.format(argument=argument))
    function = (FILE, "overlap")
    costs = tuple(
        replace(cost, function="overlap") if cost.line == 2 else replace(cost, called=(function,))
        for cost in example.profile.lines
    )
    found = rounds(Context(replace(example.profile, lines=costs), texts(example)))
    return [{cost.line for cost in one.costs} for one in found]


def test_what_a_round_hands_to_a_function_is_worked_on_there() -> None:
    assert lines("a[i]") == [{2, 7}]


def test_a_call_that_gets_nothing_of_the_round_is_no_part_of_it() -> None:
    assert lines("a") == []


def test_a_function_that_two_lines_of_a_round_call_counts_once() -> None:
    twice = SCRIPT.replace(
        "    return torch", "        rows.append(overlap(b[i], a))  #> cost calls=200\n    return torch"
    )
    example = read_example(twice.format(argument="a[i]"))
    function = (FILE, "overlap")
    costs = tuple(
        replace(cost, function="overlap") if cost.line == 2 else replace(cost, called=(function,))
        for cost in example.profile.lines
    )
    (one,) = rounds(Context(replace(example.profile, lines=costs), texts(example)))
    assert sorted(cost.line for cost in one.costs) == [2, 7, 8]


WRITTEN = """\
for step in range(100):
    i = 0
    {head}
        {body}  #> cost step_ms=9 calls=200; op aten::select count=200 cpu_ms=1
        #^ op aten::sort count=200 cpu_ms=8
"""


def heads(head: str, body: str) -> list[int]:
    """Of each loop, the line it begins on."""
    example = read_example(WRITTEN.format(head=head, body=body))
    found = rounds(Context(example.profile, texts(example)))
    return [one.source.line(one.loop) for one in found]


@pytest.mark.parametrize(
    ("head", "body"),
    [
        ("for i in range(len(x)):", "out[i] = torch.sort(x[i])"),
        ("for i in range(len(x)):", "self.out[i] = torch.sort(self.x[i])"),
        ("for i in range(len(x)):", "out[i].add_(torch.sort(x[i]))"),
        ("for i in range(len(x)):", "out[i : i + 4] += torch.sort(x[i])"),
        ("while i < len(x):", "out.append(torch.sort(x[i]))"),
        ("while i < len(x) and open_:", "out[:, i] = torch.sort(x[:, i])"),
    ],
)
def test_a_loop_that_stores_by_its_number_is_no_recurrence(head: str, body: str) -> None:
    assert heads(head, body) == [3]


@pytest.mark.parametrize(
    ("head", "body"),
    [
        ("for i in range(len(x)):", "out[i] = cell(x[i], out[i - 1])"),
        ("for i in range(len(x)):", "h[:], extra = cell(x[i], h)"),
        ("for i in range(len(x)):", "x[i].addmm_(x[i + 1] - x[i], w[i])"),
        ("for i in range(1, len(x)):", "x[i] += torch.sort(x[i - 1])"),
        ("for i in range(len(x)):", "self.h = cell(x[i], self.h)"),
        ("while i < len(x):", "h = cell(x[i], h)"),
        ("while i < len(x):", "loss(x[i]).backward()"),
    ],
)
def test_what_needs_the_round_before_or_trains_stays_a_loop(head: str, body: str) -> None:
    assert heads(head, body) == []


PIECES = """\
def pool(h, sizes):
    parts = [atoms.mean(dim=0) for atoms in h.split(sizes)]
    #^ cost step_ms=9 calls=1; {kept}
    return torch.stack(parts)
"""


def test_pieces_of_many_sizes_are_counted_in_the_recorded_step() -> None:
    """What takes them is not kept of the line, nor each of their sizes."""
    kept = [f"op aten::mean count=2 cpu_ms=0.1 shapes=[[{at},4]]" for at in range(9, 9 + MOST_OPS_A_LINE)]
    example = read_example(PIECES.format(kept="; ".join(kept)))
    flow = _pooled([9 + at % 100 for at in range(200)])
    assert {flow.sites[at].line for at in flow.site} > {2, 4}
    facts = replace(example.profile.facts, dataflow=flow)
    context = Context(replace(example.profile, facts=facts), texts(example))
    (one,) = rounds(context)
    assert (one.count, one.uneven) == (200, True)
    with pytest.raises(Refused, match="index_add_"):
        at_once(context, one)


def _pooled(sizes: list[int]) -> Dataflow:
    """The example's own lines as the runner records them, each at its number."""
    text = PIECES.format(kept="")
    scope: dict[str, Any] = {"torch": torch}
    exec(compile(text, str(Path(recording.__file__).parent / "pooled.py"), "exec"), scope)
    flow = recorded(lambda: scope["pool"](torch.zeros(sum(sizes), 4), sizes)).flow
    return replace(flow, sites=tuple(replace(site, file=FILE) for site in flow.sites))


def test_the_number_of_a_place_that_is_written_to_is_nothing_that_a_round_gave() -> None:
    example = read_example(
        """\
for i in range(len(sets)):
    for j in range(len(others)):
        scores[i, j] = distance(sets[i], others[j])
        #^ cost step_ms=9 calls=144; op aten::select count=144 cpu_ms=1
"""
    )
    found = rounds(Context(example.profile, texts(example)))
    assert [one.source.line(one.loop) for one in found] == [2]
