"""The recorded operators of one round of a loop, or of a call that is to get more rows, as a question."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, replace
from itertools import pairwise
from math import prod

from warpline.devices import can
from warpline.model.change import Replace
from warpline.model.profile import LineCost, Profile
from warpline.probing import inputs
from warpline.probing.compiled import one_call
from warpline.probing.optimizers import MOST_ON_HOST, MOST_TENSORS
from warpline.probing.parts import base_of, called_at, name_of, part_of, read, shape_of
from warpline.wire.dataflow import TENSOR, Dataflow, values_in
from warpline.wire.probing import JOINED, Question, Tensor

#: What takes a piece out of a tensor: with the loop it goes.
PIECES = frozenset({
    "select", "slice", "narrow", "index", "index_select", "unbind", "split", "split_with_sizes", "chunk",
})  # fmt: skip
#: Rounds of a trial, and on a GPU operators in all of them: with a backward pass those launch as many kernels
#: as a device's queue holds (1,024), and what is launched beyond that would be timed at the host's pace.
MOST_ROUNDS, MOST_OPERATORS = 100, 300
_DTYPES = {int: "int64", float: "float32"}


def questions_for(profile: Profile, change: Replace, costs: list[LineCost]) -> inputs.Weighted:
    """A round of a loop that is written, or none where none is recorded. Options of ``change``: the number of
    rounds a step."""
    flow, rounds = profile.facts.dataflow, int(change.options[0])
    turns = _rounds(flow, called_at(flow, set(change.places)), rounds)
    if len(turns) < 2:
        return []
    at = len(turns) // 2
    shared = {value for other in turns[:at] + turns[at + 1 :] for row in other for value in read(flow, row)}
    mine, before = (_work(flow, turn) for turn in (turns[at], turns[at - 1]))
    return _asked(profile, costs, mine, shared, rounds, _numbers(flow, mine, before))


def lists_for(profile: Profile, change: Replace) -> inputs.Weighted:
    """A loop that updates one tensor after the other, on so many of them as a trial of an optimizer has:
    small ones and large ones. Options of ``change``: the number of rounds a step, and words that the trial is
    given. Nothing where many rounds call other operators."""
    flow = profile.facts.dataflow
    rows = called_at(flow, set(change.places))
    every_turn = _rounds(flow, rows, int(change.options[0]))
    alike = Counter(tuple(flow.name[row] for row in turn) for turn in every_turn)
    usual = max(alike, key=lambda names: alike[names], default=())
    turns = [turn for turn in every_turn if tuple(flow.name[row] for row in turn) == usual]
    few = len(turns) < 2 or sum(map(len, turns)) < inputs.COVERED * len(rows)
    if few or not _known(flow, turns[0]):
        return []
    given = [part_of(flow, turn)[1] for turn in turns]
    if len({len(values) for values in given}) > 1:
        return []
    given.sort(key=lambda values: sum(prod(shape_of(flow, value)) for value in values))
    own = [at for at, of_all in enumerate(zip(*given, strict=True)) if len(set(of_all)) > 1]
    sizes = [tuple(shape_of(flow, values[at]) for at in own) for values in given]
    whole = sum(prod(shape) for shapes in sizes for shape in shapes)
    every = max(1, -(-len(turns) // MOST_TENSORS), -(-whole // MOST_ON_HOST))
    chosen = range(every // 2, len(turns), every)
    if not own or len(chosen) < 2:
        return []
    tensors = [
        Tensor(shape_of(flow, given[which][at]), flow.dtypes[flow.dtype[given[which][at]]])
        for at in range(len(given[0]))
        for which in (chosen if at in own else chosen[:1])
    ]
    part = json.dumps(asdict(part_of(flow, turns[0])[0]))
    options = part, str(len(chosen)), ",".join(map(str, own)), *change.options[1:]
    return [(Question("lists", tuple(tensors), options), 1.0)]


def rows_for(profile: Profile, change: Replace, costs: list[LineCost]) -> inputs.Weighted:
    """A call that is to get so many times the rows: as a loop whose rounds have the parameters in common.
    Options of ``change``: how many times."""
    flow = profile.facts.dataflow
    calls = round(max((cost.calls for cost in costs), default=0.0))
    every = [] if flow.missing else called_at(flow, set(change.places))
    # Layers of several sizes, called in a loop, are tried together.
    rows = one_call(flow, every, calls) or one_call(flow, every, 1)
    # A view that was made unseen may be of another part of what was written to: it is given.
    rows = [row for row in rows if flow.site[row] >= 0]
    shared = {*flow.parameters, *flow.buffers}
    asked = _asked(profile, costs, rows, shared, int(change.options[0]), {})
    return [(replace(one, options=(*one.options, JOINED)), weight) for one, weight in asked]


def tried_rounds(question: Question) -> int:
    """How many rounds a trial has."""
    return int(question.options[1])


def _asked(
    profile: Profile,
    costs: list[LineCost],
    rows: list[int],
    shared: set[int],
    rounds: int,
    numbers: dict[tuple[int, int], str],
) -> inputs.Weighted:
    """``shared``: values that all rounds have in common; ``numbers``: see ``_numbers``. Nothing where Python
    reads a number."""
    flow = profile.facts.dataflow
    if not _known(flow, rows):
        return []
    part, values = part_of(flow, rows)
    own = [at for at, value in enumerate(values) if value not in shared]
    tensors = [Tensor(shape_of(flow, value), flow.dtypes[flow.dtype[value]]) for value in values]
    made = [prod(shape_of(flow, value)) for row in rows for value in flow.outputs[row]]
    made.append(sum(prod(tensors[at].shape) for at in own))
    most = MOST_OPERATORS // len(rows) if can(profile.manifest.device.kind, "kernels") else MOST_ROUNDS
    tried = min(rounds, MOST_ROUNDS, max(2, most), inputs.MOST_NUMBERS // max(1, *made))
    if tried < 2 or not (own or numbers):
        return []
    operators = list(part.operators)
    for number, ((which, at), dtype) in enumerate(numbers.items(), len(flow.shape)):
        name, given, outputs = operators[which]
        operators[which] = name, [*given[:at], f"{TENSOR}{number}", *given[at + 1 :]], outputs
        own.append(len(tensors))
        tensors.append(Tensor((), dtype))
    given = (*part.inputs, *range(len(flow.shape), len(flow.shape) + len(numbers)))
    part = replace(part, operators=tuple(operators), inputs=given)
    words = (json.dumps(asdict(part)), str(tried), ",".join(map(str, own)))
    whole = (replace(one, shape=(tried, *one.shape)) if at in own else one for at, one in enumerate(tensors))
    backward = inputs.differentiated(costs) and bool(part.leaves)
    return [(Question("loop", tuple(whole), words, backward), 1.0)]


def _known(flow: Dataflow, rows: list[int]) -> bool:
    """Whether there are operators, which are torch's own and give tensors: no number that Python reads."""
    return bool(rows) and all(flow.outputs[row] and name_of(flow, row).startswith("aten.") for row in rows)


def _rounds(flow: Dataflow, rows: list[int], rounds: int) -> list[list[int]]:
    """The operators of each round. An operator that ran about as often as there are rounds begins one; what
    ran in few of them, as the ``stack`` around a comprehension, is in none."""
    often = Counter((flow.site[row], flow.name[row]) for row in rows)
    number = min(often.values(), key=lambda count: abs(count - rounds), default=0)
    if not number or not rounds / 2 <= number <= 2 * rounds:
        return []
    least = inputs.COVERED * number
    inside = [row for row in rows if often[flow.site[row], flow.name[row]] >= least]
    kinds = [(flow.site[row], flow.name[row]) for row in inside]
    once = next(kind for kind in kinds if often[kind] == number)
    # What runs twice in each round may stand before it.
    starts = [at - kinds.index(once) for at, kind in enumerate(kinds) if kind == once]
    return [inside[start:end] for start, end in pairwise([*starts, len(inside)])]


def _work(flow: Dataflow, rows: list[int]) -> list[int]:
    """A round's operators without those that take its pieces, or put its results in the place of one."""
    made, kept, pieces = set[int](), list[int](), set[int]()
    for row in rows:
        given = read(flow, row)
        written = list(values_in(flow.arguments[row])) if base_of(flow, row) == "copy_" else []
        if pieces.intersection(written[:1]) and made.intersection(written[1:]):
            continue
        # A mask chooses other numbers in each round, and as many.
        masked = any(flow.dtypes[flow.dtype[one]] == "bool" for one in given[1:])
        if base_of(flow, row) not in PIECES or masked or made.intersection(given):
            kept.append(row)
            made.update(flow.outputs[row])
        else:
            pieces.update(flow.outputs[row])
    return kept


def _numbers(flow: Dataflow, rows: list[int], others: list[int]) -> dict[tuple[int, int], str]:
    """Numbers that another round has others for, as the ``k`` of ``labels == k``: by operator and position,
    with their dtype."""
    found = {}
    for which, (row, other) in enumerate(zip(rows, others, strict=False)):
        pairs = zip(flow.arguments[row], flow.arguments[other], strict=False)
        for at, (one, another) in enumerate(pairs if flow.name[row] == flow.name[other] else ()):
            if type(one) in _DTYPES and type(another) is type(one) and one != another:
                found[which, at] = _DTYPES[type(one)]
    return found
