"""The recorded operators of code that torch.compile would compile, as a question."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from itertools import pairwise
from math import prod

from warpline.devices import can
from warpline.model import costs as figures
from warpline.model.change import ABOUT, Replace
from warpline.model.profile import LineCost, Profile
from warpline.probing import inputs
from warpline.probing.parts import base_of, called_at, name_of, part_of, read, shape_of
from warpline.wire.dataflow import TENSOR, Dataflow
from warpline.wire.probing import Part, Question, Tensor, part_from_json

#: Operators that are compiled for a trial: of more, those in the middle stand for all.
MOST_OPERATORS = int(figures.bound("operators-compiled"))
#: What each operator takes where no trial says it.
OPERATOR_S = figures.bound("operator-compiles-s")


def questions_for(profile: Profile, change: Replace, costs: list[LineCost]) -> inputs.Weighted:
    """The question, or one for each shape of the calls; none where the operators at the change's lines are
    not known or cannot be compiled as one graph. Options of ``change``: a mode of ``torch.compile``, how
    often the code is called a step ("8"; "about 8" where the calls may differ), and another mode that is
    tried as well, if any."""
    flow = profile.facts.dataflow
    mode, _, *others = change.options
    tried = [] if flow.missing else _rows(flow, change)[1]
    some = [row for rows, _ in tried for row in rows]
    if any(not flow.outputs[row] or not name_of(flow, row).startswith("aten.") for row in some):
        return []  # without a result: a number that Python reads, where the graph breaks
    on_device = can(profile.manifest.device.kind, "kernels")
    period_ns = 0 if on_device else round(1e6 * profile.steps.step_ms / _calls(change))
    return [
        (replace(_question(flow, rows, one, costs), period_ns=period_ns), weight * (one == mode))
        for rows, weight in tried
        for one in (mode, *others)
    ]


def _question(flow: Dataflow, rows: list[int], mode: str, costs: list[LineCost]) -> Question:
    part, values = part_of(flow, rows)
    tensors = tuple(
        Tensor(shape_of(flow, one), flow.dtypes[flow.dtype[one]], _strides(flow, rows, one, costs))
        for one in values
    )
    words = (json.dumps(asdict(part)), *([mode] if mode else []))
    return Question("compiled", tensors, words, inputs.differentiated(costs) and bool(part.leaves))


def _strides(flow: Dataflow, rows: list[int], value: int, costs: list[LineCost]) -> tuple[int, ...]:
    """How a value lies in memory, by the operator that reads it first; () where that is not known, or where
    it is contiguous or overlaps itself."""
    row = next(row for row in rows if value in read(flow, row))
    name, site, given = f"{TENSOR}{value}", flow.site[row], flow.arguments[row]
    if site < 0 or name not in given:
        return ()
    at, shape = given.index(name), shape_of(flow, value)
    line = [cost for cost in costs if cost.place == (flow.sites[site].file, flow.sites[site].line)]
    for op in inputs.forward(line):
        if op.name == f"aten::{base_of(flow, row)}" and op.shapes[at : at + 1] == (shape,):
            return _laid(shape, op.strides[at] if at < len(op.strides) else ())
    return ()


def _laid(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...]:
    if len(strides) != len(shape):
        return ()
    steps = [(stride, size) for stride, size in zip(strides, shape, strict=True) if size > 1]
    contiguous = all(stride == prod(shape[at + 1 :]) for at, stride in enumerate(strides) if shape[at] > 1)
    apart = sorted(one for one in steps if one[0])
    overlaps = any(low[0] * low[1] > high[0] for low, high in pairwise(apart))
    return () if contiguous or overlaps else strides


def size(profile: Profile, change: Replace) -> float:
    """Different operators of the code, for each different one that is compiled for a trial.

    Equal layers become the same kernels, which are compiled once: of 16 layers with 354 operators, 60
    operators took 34 s of a CPU to compile, and all 32 s (torch 2.13, measured once).
    """
    flow = profile.facts.dataflow
    rows, tried = _rows(flow, change)
    known = sum(_different(flow, some) for some, _ in tried)
    return max(1.0, _different(flow, rows) / known) if known else 1.0


def parts(profile: Profile, change: Replace) -> float:
    """The operators of one call, divided by those of its trial; 1 where all of them were tried."""
    rows, tried = _rows(profile.facts.dataflow, change)
    return max(1.0, len(rows) / _calls(change) / len(tried[0][0])) if tried else 1.0


def is_graph(question: Question) -> bool:
    """Whether the code is replayed as a CUDA graph."""
    return len(question.options) > 1


def replayed_whole(profile: Profile, change: Replace, question: Question) -> float:
    """What a call of all the code costs the host where it is replayed as a CUDA graph, by what one of the
    question's part of it costs. However many operators there are, one call launches them."""
    rows = _rows(profile.facts.dataflow, change)[0]
    whole, _ = part_of(profile.facts.dataflow, rows[: len(rows) // _calls(change)])
    return _replayed(whole) / _replayed(_part(question))


def call_share(question: Question) -> float:
    """What a call of the question's code costs the host beside its launches, as a share of what the call
    costs where it is replayed as a CUDA graph."""
    return min(1.0, figures.value("compiled-call") / _replayed(_part(question)))


def _replayed(part: Part) -> float:
    """What a replay costs the host, in launches: what goes in with a gradient, or comes out with one, adds to
    it as parameters do."""
    tensors = len(part.leaves) + len(part.results)
    return figures.value("graph-call") + tensors * figures.value("graph-parameter")


def _part(question: Question) -> Part:
    return part_from_json(json.loads(question.options[0]))


def call_in_operators(question: Question) -> float:
    """The same, as a share of what the question's operators cost the host: each of them is one launch."""
    return figures.value("compiled-call") / len(_part(question).operators)


def untried_s(profile: Profile, change: Replace) -> float:
    """Seconds that the code compiles for, by its different operators alone; 0 where they are not known."""
    flow = profile.facts.dataflow
    rows = [] if flow.missing else called_at(flow, set(change.places))
    return OPERATOR_S * _different(flow, rows)


def _different(flow: Dataflow, rows: list[int]) -> int:
    return len({_like(flow, row) for row in rows})


def _calls(change: Replace) -> int:
    return int(change.options[1].removeprefix(ABOUT))


def _rows(flow: Dataflow, change: Replace) -> tuple[list[int], list[tuple[list[int], float]]]:
    """The rows of ``change``, and those that stand for them in trials, each with a number in proportion to
    its time. Of calls that may differ in what they do: as many rows from their middle as a call has, so that
    a trial has a call's cost as often. Of calls that differ in their shapes: each."""
    rows, calls = called_at(flow, set(change.places)), _calls(change)
    tried = one_call(flow, rows, calls)
    if not tried and change.options[1].startswith(ABOUT):
        length = len(rows) // calls
        first = (len(rows) - length) // 2
        tried = one_call(flow, rows[first : first + length], 1)
    return rows, [(tried, 1.0)] if tried else _each_call(flow, rows, calls)


def _each_call(flow: Dataflow, rows: list[int], calls: int) -> list[tuple[list[int], float]]:
    """The rows of each of ``calls`` that compute the same on other shapes, with the numbers that all like it
    make; those that make most, at most ``inputs.MOST``. [] if the operators differ."""
    length = len(rows) // max(1, calls)
    every = [rows[at : at + length] for at in range(0, len(rows), length)] if length else []
    if len({tuple(flow.name[row] for row in call) for call in every}) != 1:
        return []
    found: dict[tuple[tuple[int, ...], ...], list[list[int]]] = {}
    for call in every:
        found.setdefault(tuple(_like(flow, row) for row in call), []).append(call)
    made = [
        (one_call(flow, some[0], 1), float(len(some) * _numbers(flow, some[0]))) for some in found.values()
    ]
    return sorted((one for one in made if one[0]), key=lambda one: -one[1])[: inputs.MOST]


def _numbers(flow: Dataflow, rows: list[int]) -> int:
    """How many numbers the operators make."""
    return sum(prod(shape_of(flow, one)) for row in rows for one in flow.outputs[row])


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
