"""The recorded operators of code that torch.compile would compile, as a question."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import asdict
from typing import Any

from warpline.model import costs as figures
from warpline.model.change import Replace
from warpline.model.profile import LineCost, Profile
from warpline.probing import inputs
from warpline.wire.dataflow import OPTIMIZER, TENSOR, Dataflow
from warpline.wire.probing import Part, Question, Tensor

#: Operators that are compiled for a trial: of more, those in the middle stand for all.
MOST_OPERATORS = int(figures.bound("operators-compiled"))
#: Operators that read only the shape of a tensor.
_SHAPE_ONLY = ("empty_", "new_", "ones_", "zeros_", "full_", "rand_", "randn_", "randint_")


def questions_for(profile: Profile, change: Replace, costs: list[LineCost]) -> inputs.Weighted:
    """The question, or none where the operators at the change's lines are not known or cannot be compiled as
    one graph. Options of ``change``: a mode of ``torch.compile``, how often the code is called a step, and
    another mode that is tried as well, if any."""
    flow = profile.facts.dataflow
    mode, calls, *others = change.options
    rows = [] if flow.missing else _one_call(flow, _called_at(flow, set(change.places)), int(calls))
    if not rows or any(not flow.outputs[row] or not _name(flow, row).startswith("aten.") for row in rows):
        return []  # without a result: a number that Python reads, where the graph breaks
    part, values = _part(flow, rows)
    tensors = tuple(Tensor(_shape(flow, one), flow.dtypes[flow.dtype[one]]) for one in values)
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
    rows = _called_at(flow, set(change.places))
    tried = _one_call(flow, rows, int(change.options[1]))
    if not tried:
        return 1.0
    return len({_like(flow, row) for row in rows}) / len({_like(flow, row) for row in tried})


def _called_at(flow: Dataflow, places: Collection[tuple[str, int]]) -> list[int]:
    """The rows of the operators that compute something at ``places``."""
    found, inside = list[int](), set[int]()
    for row, site in enumerate(flow.site):
        given, made = _read(flow, row), flow.outputs[row]
        if not given:
            continue
        where = flow.sites[site] if site >= 0 else None
        if where is None:  # a view that was made unseen; one with another shape cannot be made again
            mine = given[0] in inside and _shape(flow, given[0]) == _shape(flow, made[0])
        else:
            mine = (where.file, where.line) in places and where.via != OPTIMIZER
        if mine:
            found.append(row)
            inside.update(made)
    return found


def _one_call(flow: Dataflow, rows: list[int], calls: int) -> list[int]:
    """The rows of the first of ``calls`` equal calls, or of what stands for them; [] if they differ."""
    length = len(rows) // max(1, calls)
    like = [_like(flow, row) for row in rows]
    if not length or like != like[:length] * max(1, calls):
        return []
    first = max(0, length - MOST_OPERATORS) // 2
    # Autograd allows no change in place of the leaf that the stretch begins with.
    while first < length and _base(flow, rows[first]).endswith("_"):
        first += 1
    return rows[first:length][:MOST_OPERATORS]


def _like(flow: Dataflow, row: int) -> tuple[int, ...]:
    """The operator and the shapes that it makes: equal for what is compiled to equal code."""
    return flow.name[row], *(flow.shape[one] for one in flow.outputs[row])


def _part(flow: Dataflow, rows: list[int]) -> tuple[Part, list[int]]:
    """The operators as a graph, and the values that it is given."""
    mine, made, given = set(rows), set[int](), dict[int, None]()
    later, read, grown = set[int](), set[int](), set(flow.parameters)
    for row in range(len(flow.name)):
        values = _read(flow, row)
        if grown.intersection(values):
            grown.update(flow.outputs[row])
        if row not in mine:
            later.update(made.intersection(values))
            continue
        given.update(dict.fromkeys(one for one in values if one not in made))
        read.update(values)
        made.update(flow.outputs[row])
    firsts = {flow.outputs[row][0] for row in rows}
    results = sorted(one for one in made if one in later or one in firsts - read)
    asks = [at for at, one in enumerate(given) if one in grown and "float" in flow.dtypes[flow.dtype[one]]]
    operators = tuple((_name(flow, row), flow.arguments[row], flow.outputs[row]) for row in rows)
    return Part(operators, tuple(given), tuple(asks), tuple(results)), list(given)


def _read(flow: Dataflow, row: int) -> list[int]:
    """The tensors that an operator computes with. None of a view of everything: autograd makes one of each
    result that it saves."""
    values, made = list(_values(flow.arguments[row])), flow.outputs[row]
    nothing = _base(flow, row).startswith(_SHAPE_ONLY) or (made and set(made) <= set(values))
    return [] if nothing else values


def _name(flow: Dataflow, row: int) -> str:
    return flow.names[flow.name[row]]


def _base(flow: Dataflow, row: int) -> str:
    """The name without namespace and overload: "add_"."""
    return _name(flow, row).split(".")[1]


def _shape(flow: Dataflow, value: int) -> tuple[int, ...]:
    return flow.shapes[flow.shape[value]]


def _values(given: Any) -> Iterator[int]:
    """The numbers of the tensors in an argument."""
    if isinstance(given, str) and given.startswith(TENSOR):
        yield int(given[len(TENSOR) :])
    elif isinstance(given, (list, tuple)):
        for one in given:
            yield from _values(one)
    elif isinstance(given, dict):
        yield from _values(list(given.values()))
