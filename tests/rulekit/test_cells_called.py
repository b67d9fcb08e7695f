"""Cells in functions that a loop calls for each time of a sequence."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.annotated import FILE, read_example, texts
from tests.rulekit.graph import recording
from tests.rulekit.graph.recording import recorded
from warpline.model.change import Replace, Together
from warpline.rulekit import Context
from warpline.rulekit.cells_called import called_cells
from warpline.rules.python_loop_over_tensor import PythonLoopOverTensor

torch = pytest.importorskip("torch")

TIMES, LAYERS = 9, 2
CODE = """\
import torch
from torch import nn

class Stack(nn.Module):
    def __init__(self):
        super().__init__()
        self.cells = nn.ModuleList([nn.GRUCell(6, 6), nn.GRUCell(6, 6)])

    def forward(self, x, states):
        kept = []
        for i, cell in enumerate(self.cells):  #> cost calls=27
            x = cell(x, states[i])
            #^ cost step_ms=9 calls=18; op aten::select count=18 cpu_ms=1
            #^ op aten::gru_cell count=18 cpu_ms=8
            kept.append(x)  #> cost calls=18
        return kept  #> cost calls=9

class Caption(nn.Module):
    def __init__(self):
        super().__init__()
        self.stack, self.words, self.near = Stack(), nn.Linear(4, 6), nn.Linear(6, 6)
        self.head = nn.Linear(6, 50)

    def one(self, states, word):
        x = self.words(word){fed}  #> cost step_ms=2 calls=9; op aten::addmm count=9 cpu_ms=2
        states = self.stack(x, states)  #> cost calls=9
        return states, self.head(states[-1])  #> cost step_ms=4 calls=9; op aten::addmm count=9 cpu_ms=4

    def forward(self, words, states):
        scores = []
        for t in range(words.shape[1]):  #> cost calls=10
            {step}  #> cost calls=9
            scores.append(score)  #> cost calls=9
        return torch.stack(scores, 1)  #> cost calls=1

def work():
    return Caption()(torch.randn(3, 9, 4), [torch.randn(3, 6), torch.randn(3, 6)])
"""
STEP = "states, score = self.one(states, words[:, t])"
#: The object keeps the state.
INSIDE = (
    "score = self.one(self.states if t else states, words[:, t])[1]",
    "self.states = states = self.stack(x, states)",
)
#: A second loop, as of a target network's values.
AGAIN = """\
        for t in range(words.shape[1]):  #> cost calls=10
            {step}  #> cost calls=9
            scores.append(score)  #> cost calls=9
"""


def seen(fed: str = "", step: str = STEP, stack: str = "", again: str = "") -> Context:
    code = CODE.replace("states = self.stack(x, states)", stack or "states = self.stack(x, states)")
    end = code.index("        return torch.stack(scores, 1)")
    example = read_example((code[:end] + again + code[end:]).format(fed=fed, step=step))
    names = {range(9, 15): "Stack.forward", range(22, 26): "Caption.one", range(27, 36): "Caption.forward"}
    calls = {24: "Stack.forward", 30: "Caption.one", **({33: "Caption.one"} if again else {})}
    costs = tuple(
        replace(
            cost,
            function=next(name for lines, name in names.items() if cost.line in lines),
            called=((FILE, calls[cost.line]),) if cost.line in calls else (),
        )
        for cost in example.profile.lines
    )
    scope: dict[str, Any] = {}
    path = str(Path(recording.__file__).parent / "caption.py")
    exec(compile(example.text, path, "exec"), scope)
    net = scope["Caption"]()
    data = torch.randn(3, TIMES, 4), [torch.randn(3, 6) for _ in range(LAYERS)]
    flow = recorded(lambda: net(*data), [net]).flow
    flow = replace(flow, sites=tuple(replace(site, file=FILE) for site in flow.sites))
    facts = replace(example.profile.facts, dataflow=flow)
    return Context(replace(example.profile, lines=costs, facts=facts), texts(example))


def test_the_loop_over_the_times_and_what_can_be_outside_it() -> None:
    (found,) = called_cells(seen())
    assert found.cells.source.line(found.cells.loop) == 29
    assert (found.cells.layer, found.cells.count, found.begun) == ("GRU", TIMES, 1)
    assert {cost.line for cost in found.free} == {30, 23, 25}


@pytest.mark.parametrize(
    "step",
    [
        INSIDE,
        ("score, states = self.one(states, words[:, t])[::-1]", ""),
    ],
)
def test_the_record_tells_how_the_state_is_handed_on(step: tuple[str, str]) -> None:
    (found,) = called_cells(seen("", *step))
    assert (found.cells.source.line(found.cells.loop), found.cells.count) == (29, TIMES)


def test_two_loops_that_call_one_cell_are_one_finding() -> None:
    (found,) = called_cells(seen(again=AGAIN))
    assert found.cells.source.line(found.cells.loop) == 29
    assert (found.cells.count, found.begun) == (2 * TIMES, 2)
    assert {cost.line for cost in found.free} == {30, 33, 23, 25}


def test_the_loop_over_the_layers_is_not_told() -> None:
    (one,) = PythonLoopOverTensor().find(seen())
    assert (one.line, one.cause.line, one.fixes) == (29, 12, ())
    assert isinstance(one.change, Together)
    layer = one.change.changes[0]
    assert isinstance(layer, Replace)
    assert (layer.by, layer.options) == ("recurrent", ("GRU", "9"))


@pytest.mark.parametrize(
    ("fed", "step"),
    [
        (" + self.near(states[-1])", STEP),  # what the state chooses
        ("", "states, score = self.one(states, words[:, 0] if t < 2 else score[:, :4])"),
        ("", "states, score = self.one([one * 0.5 for one in states], words[:, t])"),
        ("", "_, score = self.one(states, words[:, t])"),
        ("", "states, score = self.one(states if t % 4 else [one.abs() for one in states], words[:, t])"),
        ("", "states, score = self.one(states, words[:, 0])"),  # from outside, perhaps after the last score
    ],
)
def test_a_cell_that_needs_what_it_gave_or_whose_state_is_changed_has_no_layer(fed: str, step: str) -> None:
    assert not list(called_cells(seen(fed, step)))
