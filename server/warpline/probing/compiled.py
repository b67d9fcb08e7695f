"""The recorded operators of code that torch.compile would compile, as a question."""

from __future__ import annotations

import json
from dataclasses import asdict

from warpline.model import costs as figures
from warpline.model.change import ABOUT, Replace
from warpline.model.profile import LineCost, Profile
from warpline.probing import inputs
from warpline.probing.parts import base_of, called_at, name_of, part_of, shape_of
from warpline.wire.dataflow import Dataflow
from warpline.wire.probing import Question, Tensor, part_from_json

#: Operators that are compiled for a trial: of more, those in the middle stand for all.
MOST_OPERATORS = int(figures.bound("operators-compiled"))
#: What each operator takes where no trial says it.
OPERATOR_S = figures.bound("operator-compiles-s")


def questions_for(profile: Profile, change: Replace, costs: list[LineCost]) -> inputs.Weighted:
    """The question, or none where the operators at the change's lines are not known or cannot be compiled as
    one graph. Options of ``change``: a mode of ``torch.compile``, how often the code is called a step ("8";
    "about 8" where the calls may differ), and another mode that is tried as well, if any."""
    flow = profile.facts.dataflow
    mode, _, *others = change.options
    rows = [] if flow.missing else _rows(flow, change)[1]
    if not rows or any(not flow.outputs[row] or not name_of(flow, row).startswith("aten.") for row in rows):
        return []  # without a result: a number that Python reads, where the graph breaks
    part, values = part_of(flow, rows)
    tensors = tuple(Tensor(shape_of(flow, one), flow.dtypes[flow.dtype[one]]) for one in values)
    backward, text = inputs.differentiated(costs) and bool(part.leaves), json.dumps(asdict(part))
    return [
        (Question("compiled", tensors, (text, *([one] if one else [])), backward), float(one == mode))
        for one in (mode, *others)
    ]


def size(profile: Profile, change: Replace) -> float:
    """Different operators of the code, for each different one that is compiled for a trial.

    Equal layers become the same kernels, which are compiled once: of 16 layers with 354 operators, 60
    operators took 34 s of a CPU to compile, and all 32 s (torch 2.13, measured once).
    """
    flow = profile.facts.dataflow
    rows, tried = _rows(flow, change)
    return _different(flow, rows) / _different(flow, tried) if tried else 1.0


def parts(profile: Profile, change: Replace) -> float:
    """The operators of one call, divided by those of its trial; 1 where all of them were tried."""
    rows, tried = _rows(profile.facts.dataflow, change)
    return max(1.0, len(rows) / _calls(change) / len(tried)) if tried else 1.0


def call_share(question: Question) -> float:
    """What a call of the question's code costs the host beside its launches, as a share of what the call
    costs where it is replayed as a CUDA graph."""
    parameters = len(part_from_json(json.loads(question.options[0])).leaves)
    replayed = figures.value("graph-call") + parameters * figures.value("graph-parameter")
    return min(1.0, figures.value("compiled-call") / replayed)


def untried_s(profile: Profile, change: Replace) -> float:
    """Seconds that the code compiles for, by its different operators alone; 0 where they are not known."""
    flow = profile.facts.dataflow
    rows = [] if flow.missing else called_at(flow, set(change.places))
    return OPERATOR_S * _different(flow, rows)


def _different(flow: Dataflow, rows: list[int]) -> int:
    return len({_like(flow, row) for row in rows})


def _calls(change: Replace) -> int:
    return int(change.options[1].removeprefix(ABOUT))


def _rows(flow: Dataflow, change: Replace) -> tuple[list[int], list[int]]:
    """The rows of ``change``, and those that stand for them in a trial: of calls that differ, as many from
    their middle as a call has, so that a trial has a call's cost as often."""
    rows, calls = called_at(flow, set(change.places)), _calls(change)
    tried = one_call(flow, rows, calls)
    if not tried and change.options[1].startswith(ABOUT):
        length = len(rows) // calls
        first = (len(rows) - length) // 2
        tried = one_call(flow, rows[first : first + length], 1)
    return rows, tried


def one_call(flow: Dataflow, rows: list[int], calls: int) -> list[int]:
    """The rows of the first of ``calls`` equal calls, or of what stands for them; [] if they differ."""
    length = len(rows) // max(1, calls)
    like = [_like(flow, row) for row in rows]
    if not length or like != like[:length] * max(1, calls):
        return []
    first = max(0, length - MOST_OPERATORS) // 2
    # Autograd allows no change in place of the leaf that the stretch begins with.
    while first < length and base_of(flow, rows[first]).endswith("_"):
        first += 1
    return rows[first:length][:MOST_OPERATORS]


def _like(flow: Dataflow, row: int) -> tuple[int, ...]:
    """The operator and the shapes that it makes: equal for what is compiled to equal code."""
    return flow.name[row], *(flow.shape[one] for one in flow.outputs[row])
