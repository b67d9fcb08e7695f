"""Convolutions of width 1 between transposes, as a question: linear layers in their place, without these."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

from warpline.model.change import Replace
from warpline.model.profile import LineCost, Profile
from warpline.probing import inputs
from warpline.probing.parts import part_of, shape_of
from warpline.wire.dataflow import CONVOLUTIONS, TENSOR, TURNS, value_of
from warpline.wire.probing import Part, Question, Tensor


def questions_for(profile: Profile, change: Replace, costs: list[LineCost]) -> inputs.Weighted:
    """Options of ``change``: the operators from a transpose on to what reads its results, by their number in
    the record."""
    flow = profile.facts.dataflow
    if flow.missing:
        return []
    part, values = part_of(flow, [int(one) for one in change.options])
    read = {value for _, given, _ in part.operators for value in map(value_of, given)}
    ends = [outputs[0] for *_, outputs in part.operators if not read.intersection(outputs)]
    part = replace(part, results=tuple(ends))
    tensors = tuple(Tensor(shape_of(flow, one), flow.dtypes[flow.dtype[one]]) for one in values)
    tensors = (replace(tensors[0], strides=_strides(costs, tensors[0].shape)), *tensors[1:])
    words = tuple(json.dumps(asdict(one)) for one in (part, _linear(part, len(flow.shape))))
    return [(Question(change.by, tensors, words, inputs.differentiated(costs) and bool(part.leaves)), 1.0)]


def _strides(costs: list[LineCost], shape: tuple[int, ...]) -> tuple[int, ...]:
    """How the rows lie that a transpose gives a convolution; () where that is not known."""
    batch, length, channels = shape if len(shape) == 3 else (0, 0, 0)
    for op in inputs.forward(costs):
        if op.name == "aten::convolution" and op.strides and op.shapes[0] == (batch, channels, length):
            outer, inner, along = op.strides[0]
            if inner == 1:
                return outer, along, inner
    return ()


def _linear(part: Part, new: int) -> Part:
    """The same with linear layers, and without the transposes. ``new``: the first number of no value."""
    same: dict[int | None, int] = {}
    operators: list[Any] = []
    for name, given, outputs in part.operators:
        numbers = [same.get(value, value) for value in map(value_of, given)]
        taken = [
            one if number is None else f"{TENSOR}{number}" for one, number in zip(given, numbers, strict=True)
        ]
        base = name.split(".")[1]
        if base in TURNS and numbers[0] is not None:
            same[outputs[0]] = numbers[0]
        elif base in CONVOLUTIONS:
            image, weight, bias = taken[:3]
            operators.append(("aten.squeeze.dim", [weight, 2], (new,)))
            operators.append(("aten.linear.default", [image, f"{TENSOR}{new}", bias], outputs))
            new += 1
        else:
            operators.append((name, taken, outputs))
    results = tuple(same.get(one, one) for one in part.results)
    return replace(part, operators=tuple(operators), results=results)
