"""Loops whose rounds are in a function that they call."""

from __future__ import annotations

from dataclasses import replace

from tests.annotated import FILE, read_example, texts
from warpline.rulekit import Context
from warpline.rulekit.rounds import rounds

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
