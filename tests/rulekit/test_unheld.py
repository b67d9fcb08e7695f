"""Which call is the teacher's, where teacher and pupil run the same lines."""

from __future__ import annotations

from dataclasses import replace

from warpline.rulekit import Context
from warpline.rulekit.example import FILE, read_example, texts
from warpline.rulekit.graph.unheld import Unheld
from warpline.rulekit.unheld import unheld_at

SCRIPT = """\
class Net:
    def forward(self, x):
        return self.layer(x)  #> cost step_ms=9

def loss(x, guide):
    mine = pupil(x)  #> cost step_ms=1
    return distance(mine, guide)

def guiding(x):
    guide = expert(x)  #> cost step_ms=1
    return guide
"""
FORWARD = (FILE, "Net.forward")


def teacher(functions: dict[int, str]) -> int | None:
    """The line of the call; ``functions``: those of the two that call."""
    example = read_example(SCRIPT)
    lines = tuple(
        replace(cost, function="Net.forward")
        if cost.line == 3
        else replace(cost, function=functions[cost.line], called=(FORWARD,))
        for cost in example.profile.lines
    )
    context = Context(replace(example.profile, lines=lines), texts(example))
    inner = context.cost(FILE, 3)
    assert inner is not None
    # The operators of what no optimizer has come first.
    found = unheld_at(context, Unheld({(FILE, 3): 0.5}, {FORWARD: [True, False]}), inner)
    return found.line if found is not None else None


def test_lines_of_one_function_run_in_their_order() -> None:
    assert teacher({6: "step", 10: "step"}) == 6


def test_lines_of_two_functions_may_run_in_any() -> None:
    assert teacher({6: "loss", 10: "guiding"}) is None
