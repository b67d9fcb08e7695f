"""Loops over the pieces of a tensor: which of the recorded operators are tried."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.probing.test_changes import OTHERWISE, PLACE, answered, op, run
from tests.probing.test_compiled import flowing
from warpline.model.change import Fuse, Replace
from warpline.model.profile import Profile
from warpline.probing import informed, questions
from warpline.wire.dataflow import Dataflow
from warpline.wire.probing import Part, Tensor, part_from_json
from warpline.wire.run import Facts

LOOP = Replace("loop", (PLACE,), OTHERWISE, ("20",))


def recorded(flow: Dataflow, kind: str = "cpu") -> Profile:
    found = run(op("mul", (10,)), op("mul", (10,), phase="backward"), kind=kind)
    return replace(found, facts=Facts(dataflow=flow))


def rows_of(rounds: int, *, reads: bool = False) -> Dataflow:
    """``torch.stack([w * x[i].exp() for i in range(rounds)])``: 0 is x, 1 is w, which is a parameter."""
    calls: list[tuple[str, int, list[Any], tuple[int, ...]]] = []
    for at in range(rounds):
        first = 2 + 3 * at
        calls.append(("aten.select.int", 10, ["%0", 0, at], (first,)))
        calls.append(("aten.exp.default", 10, [f"%{first}"], (first + 1,)))
        calls.append(("aten.mul.Tensor", 10, ["%1", f"%{first + 1}"], (first + 2,)))
        if reads:
            calls.append(("aten._local_scalar_dense.default", 10, [f"%{first}"], ()))
    made = [f"%{4 + 3 * at}" for at in range(rounds)]
    calls.append(("aten.stack.default", 10, [made], (2 + 3 * rounds,)))
    return flowing(*calls, parameters=(1,))


def test_a_loop_is_asked_about_by_a_round_of_it() -> None:
    (one,) = questions(recorded(rows_of(20)), LOOP)
    text, rounds, own = one.options
    assert (one.kind, rounds, one.backward) == ("loop", "20", True)
    part = part_from_json(json.loads(text))
    piece = 2 + 3 * 10  # of the round in the middle; taking it is no work of the round
    assert part == Part(
        (
            ("aten.exp.default", [f"%{piece}"], (piece + 1,)),
            ("aten.mul.Tensor", ["%1", f"%{piece + 1}"], (piece + 2,)),
        ),
        (piece, 1),
        (1,),
        (piece + 2,),
    )
    assert (own, one.tensors) == ("0", (Tensor((20, 10), "float32"), Tensor((10,), "float32")))


def test_what_a_mask_chooses_is_work_of_the_round() -> None:
    calls: list[tuple[str, int, list[Any], tuple[int, ...]]] = []
    for at in range(20):
        first = 2 + 4 * at
        calls.append(("aten.select.int", 10, ["%0", 0, at], (first,)))
        calls.append(("aten.select.int", 10, ["%1", 0, at], (first + 1,)))
        calls.append(("aten.index.Tensor", 10, [f"%{first}", [f"%{first + 1}"]], (first + 2,)))
        calls.append(("aten.max.default", 10, [f"%{first + 2}"], (first + 3,)))
    flow = flowing(*calls, parameters=())
    masks = {1, *(3 + 4 * at for at in range(20))}
    kinds = tuple(int(value in masks) for value in range(len(flow.dtype)))
    (one,) = questions(recorded(replace(flow, dtypes=("float32", "bool"), dtype=kinds)), LOOP)
    names = [name for name, *_ in part_from_json(json.loads(one.options[0])).operators]
    assert names == ["aten.index.Tensor", "aten.max.default"]
    assert [(given.shape, given.dtype) for given in one.tensors] == [
        ((20, 10), "float32"),
        ((20, 10), "bool"),
    ]


def test_what_puts_a_result_into_its_place_goes_with_the_loop() -> None:
    calls: list[tuple[str, int, list[Any], tuple[int, ...]]] = []
    for at in range(20):
        first = 2 + 4 * at
        calls.append(("aten.select.int", 10, ["%0", 0, at], (first,)))
        calls.append(("aten.exp.default", 10, [f"%{first}"], (first + 1,)))
        calls.append(("aten.select.int", 10, ["%1", 0, at], (first + 2,)))
        calls.append(("aten.copy_.default", 10, [f"%{first + 2}", f"%{first + 1}"], (first + 3,)))
    (one,) = questions(recorded(flowing(*calls, parameters=())), LOOP)
    assert [name for name, *_ in part_from_json(json.loads(one.options[0])).operators] == ["aten.exp.default"]


def test_one_call_takes_the_host_as_long_for_more_rounds() -> None:
    profile, change = recorded(rows_of(400), "cuda"), replace(LOOP, options=("400",))
    (one,) = questions(profile, change)
    assert one.options[1] == "100"
    tried, whole = informed(profile, change, {one: answered(one, 0.2, 0.4)})
    assert whole
    assert tried == Fuse((PLACE,), keep=pytest.approx(0.2), keep_host=pytest.approx(0.1))


@pytest.mark.parametrize(
    "flow",
    [
        rows_of(20, reads=True),  # a number in Python
        rows_of(5),  # other operators took the pieces
        flowing(*[("aten.exp.default", 10, ["%0"], (1,))] * 20, parameters=()),  # the same in each round
    ],
)
def test_what_has_no_rounds_of_pieces_is_not_tried(flow: Dataflow) -> None:
    assert not questions(recorded(flow), LOOP)


def test_a_call_that_is_to_get_twice_the_rows_has_its_parameters_in_common() -> None:
    """Two equal calls a step, as of a layer that is called twice."""
    flow = flowing(
        ("aten.mul.Tensor", 10, ["%0", "%1"], (2,)),
        ("aten.exp.default", 10, ["%2"], (3,)),
        ("aten.mul.Tensor", 10, ["%3", "%1"], (4,)),
        ("aten.exp.default", 10, ["%4"], (5,)),
        parameters=(1,),
    )
    profile = recorded(flow)
    profile = replace(profile, lines=(replace(profile.lines[0], calls=2.0),))
    change = Replace("rows", (PLACE,), OTHERWISE, ("2",))
    (one,) = questions(profile, change)
    assert (one.kind, one.options[1:]) == ("loop", ("2", "0", "joined"))
    assert one.tensors == (Tensor((2, 10), "float32"), Tensor((10,), "float32"))
    assert len(part_from_json(json.loads(one.options[0])).operators) == 2
    assert informed(profile, change, {one: answered(one, 0.6, 0.6)})[1]


def test_layers_of_several_sizes_that_a_line_calls_get_the_rows_together() -> None:
    """``for layer in layers: x = layer(x)``: an operator of another kind in each call."""
    flow = flowing(
        ("aten.mul.Tensor", 10, ["%0", "%1"], (2,)),
        ("aten.exp.default", 20, ["%2"], (3,)),
        ("aten.add.Tensor", 10, ["%3", "%4"], (5,)),
        parameters=(1, 4),
    )
    profile = recorded(flow)
    profile = replace(profile, lines=(replace(profile.lines[0], calls=2.0),))
    (one,) = questions(profile, Replace("rows", (PLACE,), OTHERWISE, ("2",)))
    assert one.options[1:] == ("2", "0,2", "joined")
    names = [name for name, *_ in part_from_json(json.loads(one.options[0])).operators]
    assert names == ["aten.mul.Tensor", "aten.add.Tensor"]


def test_a_view_that_was_made_unseen_is_given_to_a_call() -> None:
    """What wrote to another part of the same memory does not make it."""
    flow = flowing(
        ("aten.exp.default", 10, ["%0"], (1,)),
        ("aten.alias.default", 10, ["%1"], (2,)),
        ("aten.mul_.Tensor", 10, ["%2", "%1"], (3,)),
        parameters=(),
    )
    flow = replace(flow, site=(flow.site[0], -1, flow.site[2]))
    (one,) = questions(recorded(flow), Replace("rows", (PLACE,), OTHERWISE, ("2",)))
    part = part_from_json(json.loads(one.options[0]))
    assert [operator[2] for operator in part.operators] == [(1,), (3,)]
    assert part.inputs == (0, 2)


def test_a_number_of_each_round_is_given_to_it() -> None:
    """``labels == k`` for each ``k``, of which all rounds have the labels in common."""
    calls: list[tuple[str, int, list[Any], tuple[int, ...]]] = []
    for at in range(20):
        calls.append(("aten.eq.Scalar", 10, ["%0", at], (2 * at + 1,)))
        calls.append(("aten.sum.default", 10, [f"%{2 * at + 1}"], (2 * at + 2,)))
    (one,) = questions(recorded(flowing(*calls, parameters=())), LOOP)
    part = part_from_json(json.loads(one.options[0]))
    assert part.operators[0][1] == ["%0", "%41"]
    assert (part.inputs, one.options[2]) == ((0, 41), "1")
    assert one.tensors == (Tensor((10,), "float32"), Tensor((20,), "int64"))


def averaged(*sizes: int, other: int = -1) -> Dataflow:
    """``old.mul_(0.9).add_(new)`` for tensors of some sizes; the one at ``other`` is only multiplied."""
    calls: list[tuple[str, int, list[Any], tuple[int, ...]]] = []
    for at in range(len(sizes)):
        first = 4 * at
        calls.append(("aten.mul_.Tensor", 10, [f"%{first}", 0.9], (first + 2,)))
        if at != other:
            calls.append(("aten.add_.Tensor", 10, [f"%{first + 2}", f"%{first + 1}"], (first + 3,)))
    flow = flowing(*calls, parameters=())
    shapes = tuple(dict.fromkeys((size,) for size in sizes))
    return replace(
        flow, shapes=shapes, shape=tuple(shapes.index((size,)) for size in sizes for _ in range(4))
    )


def test_an_update_of_each_parameter_is_tried_on_lists_of_them() -> None:
    change = Replace("lists", (PLACE,), OTHERWISE, ("3",))
    (one,) = questions(recorded(averaged(5, 6, 7)), change)
    text, rounds, own = one.options
    assert (one.kind, rounds, own) == ("lists", "3", "0,1")
    assert one.tensors == tuple(Tensor((size,), "float32") for size in (5, 6, 7) * 2)
    assert [name for name, *_ in part_from_json(json.loads(text)).operators] == [
        "aten.mul_.Tensor",
        "aten.add_.Tensor",
    ]
    (usual,) = questions(recorded(averaged(*[5] * 9, 6, other=9)), replace(change, options=("10",)))
    assert usual.options[1] == "9"
    (some,) = questions(recorded(averaged(*[2**19, 2] * 6)), replace(change, options=("12",)))
    assert [one.shape for one in some.tensors] == [*[(2,)] * 3, *[(2**19,)] * 3] * 2, "small and large ones"
    assert not questions(recorded(averaged(5, 6, 7, other=1)), change), "too many do something else"


def test_a_round_may_begin_with_what_it_does_twice() -> None:
    """``old.copy_(0.9 * old + 0.1 * new)``, whose line alone is known."""
    calls: list[tuple[str, int, list[Any], tuple[int, ...]]] = []
    for first in (0, 6):
        calls.append(("aten.mul.Tensor", 10, [f"%{first}", 0.9], (first + 2,)))
        calls.append(("aten.mul.Tensor", 10, [f"%{first + 1}", 0.1], (first + 3,)))
        calls.append(("aten.add.Tensor", 10, [f"%{first + 2}", f"%{first + 3}"], (first + 4,)))
        calls.append(("aten.copy_.default", 10, [f"%{first}", f"%{first + 4}"], (first + 5,)))
    change = Replace("lists", (PLACE,), OTHERWISE, ("2",))
    (one,) = questions(recorded(flowing(*calls, parameters=())), change)
    names = [name for name, *_ in part_from_json(json.loads(one.options[0])).operators]
    assert names == ["aten.mul.Tensor", "aten.mul.Tensor", "aten.add.Tensor", "aten.copy_.default"]
