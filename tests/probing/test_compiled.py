"""Compiled code: which of the recorded operators are tried."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.probing.test_changes import FILE, OTHERWISE, PLACE, op, run
from warpline.model import costs
from warpline.model.change import ABOUT, Fuse, Replace, Together
from warpline.probing import compiling_s, informed, questions
from warpline.probing.compiled import MOST_OPERATORS, OPERATOR_S
from warpline.wire.dataflow import Dataflow, OperatorSite
from warpline.wire.probing import Answer, Cost, Part, Question, Tensor, part_from_json
from warpline.wire.run import Facts


def flowing(
    *operators: tuple[str, int, list[object], tuple[int, ...]], parameters: tuple[int, ...]
) -> Dataflow:
    """Operators by name, line, arguments and results; all values are ten numbers."""
    names = tuple(dict.fromkeys(name for name, *_ in operators))
    lines = tuple(dict.fromkeys(line for _, line, *_ in operators))
    count = 1 + max(value for *_, outputs in operators for value in outputs)
    return Dataflow(
        missing="",
        names=names,
        sites=tuple(OperatorSite(FILE, line, "f") for line in lines),
        shapes=((10,),),
        dtypes=("float32",),
        name=tuple(names.index(name) for name, *_ in operators),
        site=tuple(lines.index(line) for _, line, *_ in operators),
        arguments=tuple(given for _, _, given, _ in operators),
        outputs=tuple(outputs for *_, outputs in operators),
        shape=(0,) * count,
        dtype=(0,) * count,
        parameters=parameters,
    )


def compiling(flow: Dataflow, calls: int | str = 1, mode: str = "") -> list[Question]:
    found = run(op("mul", (10,)), op("mul", (10,), phase="backward"))
    change = Replace("compiled", (PLACE,), OTHERWISE, (mode, str(calls)))
    return questions(replace(found, facts=Facts(dataflow=flow)), change)


def test_compiled_code_is_asked_about_by_the_recorded_operators_of_its_lines() -> None:
    flow = flowing(
        ("aten.mul.Tensor", 9, ["%0", "%1"], (2,)),  # before: what it makes is given
        ("aten.exp.default", 10, ["%2"], (3,)),
        ("aten.detach.default", 10, ["%3"], (3,)),  # autograd's
        ("aten.add.Tensor", 10, ["%3", "%4"], (5,)),
        ("aten.sum.default", 11, ["%5"], (6,)),  # after: what it reads is a result
        ("aten.ones_like.default", 10, ["%6"], (7,)),
        parameters=(0,),
    )
    (one,) = compiling(flow, mode="reduce-overhead")
    assert one.kind == "compiled"
    assert one.tensors == (Tensor((10,), "float32"),) * 2
    assert one.backward
    text, mode = one.options
    assert mode == "reduce-overhead"
    assert part_from_json(json.loads(text)) == Part(
        (("aten.exp.default", ["%2"], (3,)), ("aten.add.Tensor", ["%3", "%4"], (5,))), (2, 4), (0,), (5,)
    )


@pytest.mark.parametrize(
    ("shape", "strides", "asked"),
    [
        ((2, 3, 4), (12, 1, 3), (12, 1, 3)),  # channels last
        ((2, 3, 4), (12, 4, 1), ()),  # contiguous
        ((1, 3, 4), (99, 4, 1), ()),
        ((2, 3, 4), (4, 0, 1), (4, 0, 1)),  # the same numbers again
        ((2, 3, 4), (12, 4, 2), ()),  # overlaps itself
        ((2, 3, 5), (12, 1, 3), ()),  # of another call
    ],
)
def test_what_is_given_lies_as_it_did(
    shape: tuple[int, ...], strides: tuple[int, ...], asked: tuple[int, ...]
) -> None:
    flow = replace(flowing(("aten.exp.default", 10, ["%0"], (1,)), parameters=()), shapes=((*shape[:2], 4),))
    found = run(replace(op("exp", shape), strides=(strides,)))
    change = Replace("compiled", (PLACE,), OTHERWISE, ("", "1"))
    (one,) = questions(replace(found, facts=Facts(dataflow=flow)), change)
    assert one.tensors == (Tensor((*shape[:2], 4), "float32", asked),)


def test_tensors_that_ask_for_gradients_get_them() -> None:
    flow = replace(flowing(("aten.exp.default", 10, ["%0"], (1,)), parameters=()), leaves=(0,))
    (one,) = compiling(flow)
    assert one.backward


def test_of_several_equal_calls_one_is_compiled() -> None:
    twice = [
        ("aten.exp.default", 10, [f"%{first}"], (first + 1,))
        if one
        else ("aten.sin.default", 10, [f"%{first}"], (first + 1,))
        for first, one in ((0, True), (1, False), (2, True), (3, False))
    ]
    (one,) = compiling(flowing(*twice, parameters=(0,)), calls=2)
    assert [name for name, *_ in json.loads(one.options[0])["operators"]] == [
        "aten.exp.default",
        "aten.sin.default",
    ]
    assert not compiling(flowing(*twice[:3], parameters=(0,)), calls=2)


def test_of_calls_that_differ_the_middle_is_compiled_as_long_as_one_is() -> None:
    """As under autocast, which casts the weights in the first call only."""
    casts = [("aten._to_copy.default", 10, ["%0"], (1,))]
    calls = [(f"aten.{'exp' if at % 2 else 'sin'}.default", 10, [f"%{at}"], (at + 1,)) for at in range(1, 9)]
    flow = flowing(*casts, *calls, parameters=(0,))
    assert not compiling(flow, calls=4)
    (one,) = compiling(flow, calls=f"{ABOUT}4")
    names = [name for name, *_ in json.loads(one.options[0])["operators"]]
    assert sorted(names) == ["aten.exp.default", "aten.sin.default"]
    alike = flowing(*calls, parameters=(1,))
    assert compiling(alike, calls=f"{ABOUT}4") == compiling(alike, calls=4)


def test_calls_with_other_shapes_are_compiled_each() -> None:
    """They count by the numbers that they make: three times ten, and once 40."""
    names = ("exp", "sin") * 4
    flow = flowing(
        *[(f"aten.{name}.default", 10, [f"%{at}"], (at + 1,)) for at, name in enumerate(names)],
        parameters=(0,),
    )
    wide = replace(flow, shapes=((10,), (40,)), shape=(0,) * 5 + (1, 1) + (0,) * 2)
    found, change = run(op("mul", (10,))), Replace("compiled", (PLACE,), OTHERWISE, ("", "4"))
    profile = replace(found, facts=Facts(dataflow=wide))
    large, small = questions(profile, change)
    assert (large.tensors, small.tensors) == ((Tensor((10,), "float32"),),) * 2
    answers = {
        one: Answer(one, Cost(1e6, 1e6), Cost(left * 1e6, left * 1e6), compiling_s=2.0)
        for one, left in ((large, 0.2), (small, 0.9))
    }
    made, tried = informed(profile, change, answers)
    assert tried
    assert isinstance(made, Fuse)
    assert made.keep == pytest.approx((40 * 0.2 + 30 * 0.9) / 70)
    assert compiling_s(profile, change, answers) == pytest.approx(4.0)


def test_of_a_long_model_the_middle_is_compiled() -> None:
    many = [("aten.exp.default", 10, [f"%{at}"], (at + 1,)) for at in range(3 * MOST_OPERATORS)]
    many[MOST_OPERATORS] = ("aten.exp_.default", *many[MOST_OPERATORS][1:])  # of a leaf that is refused
    (one,) = compiling(flowing(*many, parameters=(0,)))
    part = part_from_json(json.loads(one.options[0]))
    assert len(part.operators) == MOST_OPERATORS
    assert (part.inputs, part.leaves) == ((MOST_OPERATORS + 1,), (0,))


@pytest.mark.parametrize(("others", "whole"), [(0, 3.0), (3, 12.0)])
def test_what_a_trial_does_not_have_compiles_as_long_again(others: int, whole: float) -> None:
    names = ["exp"] * 3 * MOST_OPERATORS + ["log", "sin", "cos"][:others]
    flow = flowing(
        *[(f"aten.{name}.default", 10, [f"%{at}"], (at + 1,)) for at, name in enumerate(names)],
        parameters=(0,),
    )
    found = replace(run(op("mul", (10,)), op("mul", (10,), phase="backward")), facts=Facts(dataflow=flow))
    change = Together((OTHERWISE, Replace("compiled", (PLACE,), OTHERWISE, ("", "1", "reduce-overhead"))))
    plain, graphs = questions(found, change)
    answers = {
        plain: Answer(plain, Cost(2.0, 2.0), Cost(1.0, 1.0), compiling_s=3.0),
        graphs: Answer(graphs, Cost(2.0, 2.0), Cost(1.0, 1.0), compiling_s=5.0),  # another mode: not this fix
    }
    assert compiling_s(found, change, answers) == pytest.approx(whole)
    assert compiling_s(found, change, {}) == pytest.approx(OPERATOR_S * (1 + others))
    assert compiling_s(found, OTHERWISE, answers) == 0.0


def left(host: float) -> Fuse:
    """What compiled code leaves of the host's time, less the script's Python between its operators."""
    between = host * (1 - costs.value("python-between"))
    return Fuse((PLACE,), keep=0.6, keep_host=pytest.approx(host), keep_between=pytest.approx(between))


@pytest.mark.parametrize("longer", [1, 3])
def test_what_a_call_costs_beside_its_launches_is_paid_once(longer: int) -> None:
    """A graph that is replayed launches nothing: the host pays for the call alone. One tensor with a gradient
    goes in, and one comes out."""
    replayed = costs.value("graph-call") + 2 * costs.value("graph-parameter")
    once = 0.4 * costs.value("compiled-call") / replayed
    host = 0.9 - once + once / longer
    many = [("aten.exp.default", 10, [f"%{at}"], (at + 1,)) for at in range(longer * MOST_OPERATORS)]
    flow = flowing(*many, parameters=(0,))
    found = replace(run(op("mul", (10,)), op("mul", (10,), phase="backward")), facts=Facts(dataflow=flow))
    change = Replace("compiled", (PLACE,), OTHERWISE, ("", "1", "reduce-overhead"))
    plain, graphs = questions(found, change)
    tried = [
        Answer(plain, Cost(10.0, 10.0), Cost(9.0, 6.0)),
        Answer(graphs, Cost(10.0, 10.0), Cost(4.0, 6.0)),
    ]
    informed_of = informed(found, change, {one.question: one for one in tried})
    assert informed_of == (left(host), True)
    once = costs.value("compiled-call") / MOST_OPERATORS  # that trial was not made
    expected = left(0.9 - once + once / longer)
    assert informed(found, change, {plain: tried[0]})[0] == expected
    # Nor does it tell anything where the graph is recorded again each time.
    recorded = Answer(graphs, Cost(10.0, 10.0), Cost(12.0, 40.0))
    assert informed(found, change, {plain: tried[0], graphs: recorded})[0] == expected


@pytest.mark.parametrize(("longer", "calls"), [(1, 1), (3, 1), (3, 2)])
def test_a_graph_of_all_operators_costs_the_host_what_one_of_a_part_does(longer: int, calls: int) -> None:
    """And what the other parameters add: each of the operators has one."""
    many = [
        ("aten.add.Tensor", 10, [f"%{at + 200}", f"%{at % 180}"], (at + 201,))
        for at in range(longer * MOST_OPERATORS)
    ]
    again = [
        (name, line, [f"%{at + 500}", given[1]], (at + 501,))
        for at, (name, line, given, _) in enumerate(many)
    ]
    flow = flowing(*(many + again)[: calls * len(many)], parameters=tuple(range(180)))
    found = replace(run(op("mul", (10,)), op("mul", (10,), phase="backward")), facts=Facts(dataflow=flow))
    change = Replace("compiled", (PLACE,), OTHERWISE, ("reduce-overhead", str(calls)))
    (graph,) = questions(found, change)
    tried = Answer(graph, Cost(10.0, 10.0), Cost(4.0, 6.0))
    # Parameters, what the part begins with, and its result.
    whole, part = (
        costs.value("graph-call") + tensors * costs.value("graph-parameter")
        for tensors in (longer * MOST_OPERATORS + 1, MOST_OPERATORS + (1 if longer == 1 else 2))
    )
    expected = left(0.4 / longer * whole / part)
    assert informed(found, change, {graph: tried}) == (expected, True)


@pytest.mark.parametrize(
    "stray",
    [("aten._local_scalar_dense.default", 10, ["%1"], ()), ("torchvision.nms.default", 10, ["%1"], (2,))],
)
def test_where_the_graph_would_break_nothing_is_compiled(
    stray: tuple[str, int, list[object], tuple[int, ...]],
) -> None:
    assert not compiling(flowing(("aten.exp.default", 10, ["%0"], (1,)), stray, parameters=(0,)))
    assert not compiling(
        replace(flowing(("aten.exp.default", 10, ["%0"], (1,)), parameters=(0,)), missing="too many")
    )


def test_on_a_cpu_a_question_says_how_soon_the_code_is_called_again() -> None:
    flow = flowing(*(("aten.exp.default", 10, [f"%{at}"], (at + 1,)) for at in range(4)), parameters=(0,))
    for kind, calls, period_ns in (("cpu", 4, 2_500_000), ("cpu", 1, 10_000_000), ("cuda", 4, 0)):
        found = run(op("exp", (10,)), kind=kind)
        found = replace(found, facts=Facts(dataflow=flow), steps=replace(found.steps, step_ms=10.0))
        (one,) = questions(found, Replace("compiled", (PLACE,), OTHERWISE, ("", str(calls))))
        assert one.period_ns == period_ns
