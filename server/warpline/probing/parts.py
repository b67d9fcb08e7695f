"""Recorded operators taken out of their step: which ran at some lines, and what they are given."""

from __future__ import annotations

from collections.abc import Collection

from warpline.wire.dataflow import OPTIMIZER, Dataflow, values_in
from warpline.wire.probing import Part

#: Operators that read only the shape of a tensor.
_SHAPE_ONLY = ("empty_", "new_", "ones_", "zeros_", "full_", "rand_", "randn_", "randint_")
#: What each operator of the last step that was asked about computes with: every question needs all of it.
_reads: list[tuple[Dataflow, list[list[int]]]] = []


def called_at(flow: Dataflow, places: Collection[tuple[str, int]]) -> list[int]:
    """The rows of the operators that compute something at ``places``."""
    found, inside = list[int](), set[int]()
    for row, given in enumerate(reads(flow)):
        site, made = flow.site[row], flow.outputs[row]
        if not given:
            continue
        where = flow.sites[site] if site >= 0 else None
        if where is None:  # a view that was made unseen; one with another shape cannot be made again
            mine = given[0] in inside and shape_of(flow, given[0]) == shape_of(flow, made[0])
        else:
            mine = (where.file, where.line) in places and where.via != OPTIMIZER
        if mine:
            found.append(row)
            inside.update(made)
    return found


def part_of(flow: Dataflow, rows: list[int]) -> tuple[Part, list[int]]:
    """The operators as a graph, and the values that it is given."""
    mine, made, given = set(rows), set[int](), dict[int, None]()
    later, used, grown = set[int](), set[int](), {*flow.parameters, *flow.leaves}
    for row, values in enumerate(reads(flow)):
        if grown.intersection(values):
            grown.update(flow.outputs[row])
        if row not in mine:
            later.update(made.intersection(values))
            continue
        given.update(dict.fromkeys(one for one in values if one not in made))
        used.update(values)
        made.update(flow.outputs[row])
    firsts = {flow.outputs[row][0] for row in rows}
    results = sorted(one for one in made if one in later or one in firsts - used)
    asks = [at for at, one in enumerate(given) if one in grown and "float" in flow.dtypes[flow.dtype[one]]]
    operators = tuple((name_of(flow, row), flow.arguments[row], flow.outputs[row]) for row in rows)
    return Part(operators, tuple(given), tuple(asks), tuple(results)), list(given)


def reads(flow: Dataflow) -> list[list[int]]:
    """``read`` of each row. The lists are kept: do not change them."""
    for known, found in _reads:
        if known is flow:
            return found
    found = [_read(flow, row) for row in range(len(flow.name))]
    _reads[:] = [(flow, found)]
    return found


def read(flow: Dataflow, row: int) -> list[int]:
    """The tensors that an operator computes with. None of a view of everything: autograd makes one of each
    result that it saves."""
    return reads(flow)[row]


def _read(flow: Dataflow, row: int) -> list[int]:
    values, made = list(values_in(flow.arguments[row])), flow.outputs[row]
    nothing = base_of(flow, row).startswith(_SHAPE_ONLY) or (made and set(made) <= set(values))
    return [] if nothing else values


def name_of(flow: Dataflow, row: int) -> str:
    """The whole name: "aten.add_.Tensor"."""
    return flow.names[flow.name[row]]


def base_of(flow: Dataflow, row: int) -> str:
    """The name without namespace and overload: "add_"."""
    return name_of(flow, row).split(".")[1]


def shape_of(flow: Dataflow, value: int) -> tuple[int, ...]:
    """The dimensions of a value."""
    return flow.shapes[flow.shape[value]]
