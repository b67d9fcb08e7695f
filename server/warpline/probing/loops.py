"""The recorded operators of one round of a loop, or of a call that is to get more rows, as a question."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict

from warpline.devices import can
from warpline.model.change import Replace
from warpline.model.profile import LineCost, Profile
from warpline.probing import inputs
from warpline.probing.compiled import one_call
from warpline.probing.parts import base_of, called_at, name_of, part_of, read, shape_of
from warpline.wire.dataflow import Dataflow
from warpline.wire.probing import Question, Tensor

#: What takes a piece out of a tensor: with the loop it goes.
PIECES = frozenset({
    "select", "slice", "narrow", "index", "index_select", "unbind", "split", "split_with_sizes", "chunk",
})  # fmt: skip
#: Rounds of a trial, and on a GPU operators in all of them: with a backward pass those launch as many kernels
#: as a device's queue holds (1,024), and what is launched beyond that would be timed at the host's pace.
MOST_ROUNDS, MOST_OPERATORS = 100, 300


def questions_for(profile: Profile, change: Replace, costs: list[LineCost]) -> inputs.Weighted:
    """A round of a loop that is written, or none where none is recorded. Options of ``change``: the number of
    rounds a step."""
    flow, rounds = profile.facts.dataflow, int(change.options[0])
    rows, others = _one_round(flow, called_at(flow, set(change.places)), rounds)
    shared = {value for row in others for value in read(flow, row)}
    return _asked(profile, costs, rows, shared, rounds)


def rows_for(profile: Profile, change: Replace, costs: list[LineCost]) -> inputs.Weighted:
    """A call that is to get so many times the rows: as a loop whose rounds have the parameters in common.
    Options of ``change``: how many times."""
    flow = profile.facts.dataflow
    calls = round(max((cost.calls for cost in costs), default=0.0))
    rows = [] if flow.missing else one_call(flow, called_at(flow, set(change.places)), calls)
    return _asked(profile, costs, rows, {*flow.parameters, *flow.buffers}, int(change.options[0]))


def _asked(
    profile: Profile, costs: list[LineCost], rows: list[int], shared: set[int], rounds: int
) -> inputs.Weighted:
    """``shared``: values that all rounds have in common. Nothing where Python reads a number."""
    flow = profile.facts.dataflow
    if not rows or any(not flow.outputs[row] or not name_of(flow, row).startswith("aten.") for row in rows):
        return []
    part, values = part_of(flow, rows)
    own = [at for at, value in enumerate(values) if value not in shared]
    most = MOST_OPERATORS // len(rows) if can(profile.manifest.device.kind, "kernels") else MOST_ROUNDS
    tried = max(2, min(rounds, most, MOST_ROUNDS))
    if not own:
        return []
    tensors = tuple(
        Tensor((tried, *shape) if at in own else shape, flow.dtypes[flow.dtype[value]])
        for at, value in enumerate(values)
        for shape in [shape_of(flow, value)]
    )
    words = (json.dumps(asdict(part)), str(tried), ",".join(map(str, own)))
    return [(Question("loop", tensors, words, inputs.differentiated(costs) and bool(part.leaves)), 1.0)]


def tried_rounds(question: Question) -> int:
    """How many rounds a trial has."""
    return int(question.options[1])


def _one_round(flow: Dataflow, rows: list[int], rounds: int) -> tuple[list[int], list[int]]:
    """The operators of a round in the middle, less those that take its pieces, and the rows of all others.

    An operator that ran about as often as there are rounds begins one. What ran less often, as the ``stack``
    around a comprehension, is in none.
    """
    often = Counter((flow.site[row], flow.name[row]) for row in rows)
    number = min(often.values(), key=lambda count: abs(count - rounds), default=0)
    if not number or not rounds / 2 <= number <= 2 * rounds:
        return [], []
    inside = [row for row in rows if often[flow.site[row], flow.name[row]] >= number]
    first = next(row for row in inside if often[flow.site[row], flow.name[row]] == number)
    starts = [row for row in inside if _same(flow, row, first)]
    start, *end = starts[len(starts) // 2 :][:2]
    whole = [row for row in inside if start <= row < (end[0] if end else len(flow.name))]
    made, kept = set[int](), list[int]()
    for row in whole:
        if base_of(flow, row) not in PIECES or made.intersection(read(flow, row)):
            kept.append(row)
            made.update(flow.outputs[row])
    mine = set(whole)
    return kept, [row for row in rows if row not in mine]


def _same(flow: Dataflow, row: int, other: int) -> bool:
    return (flow.site[row], flow.name[row]) == (flow.site[other], flow.name[other])
