"""What is compiled with a function, and what keeps it from being compiled."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import libcst as cst
import pytest
import torch

from tests.annotated import FILE, read_example, texts
from warpline.model.change import CompiledCalls, Fuse, Replace, Together
from warpline.model.profile import LineCost, Op
from warpline.rulekit import Context, Draft
from warpline.rulekit.compiled_reach import (
    breaks_at,
    calls_of,
    in_order,
    not_compiled,
    reached_ms,
    unrolled,
    written_out,
)
from warpline.rules.unfused_elementwise import UnfusedElementwise

SCRIPT = """\
def gate(v):
    up = v.exp() * 2
    return up / (up + 1)

def currents(v, m):
    inner = gate(v)
    m = (m - inner) * m + inner
    return m * v

def solve(v, m):
    for _ in range(60):
        m = currents(v, m) * m + m - v
        if m.sum() < 1:
            break
    return m
"""
FUNCTIONS = {2: "gate", 3: "gate", 6: "currents", 7: "currents", 8: "currents", 12: "solve", 13: "solve"}
CALLED = {6: "gate", 12: "currents"}
CALLS = {2: 60, 3: 60, 6: 60, 7: 60, 8: 60, 12: 60, 13: 60}


def context() -> Context:
    lines = SCRIPT.splitlines()
    for line in FUNCTIONS:
        syncs = " syncs=60" if line == 13 else ""
        lines[line - 1] += (
            f"  #> cost step_ms=4 device_ms=4 calls={CALLS[line]}{syncs};"
            " kernel vectorized_elementwise_kernel count=120 device_ms=4"
            + ("; op aten::_local_scalar_dense count=60" if syncs else "")
        )
    example = read_example("\n".join(lines) + "\n")
    costs = tuple(
        replace(
            cost,
            function=FUNCTIONS[cost.line],
            called=((FILE, CALLED[cost.line]),) if cost.line in CALLED else (),
        )
        for cost in example.profile.lines
    )
    return Context(replace(example.profile, lines=costs), texts(example))


def functions(run: Context) -> dict[str, cst.FunctionDef]:
    return {one.name.value: one for one in run.source(FILE).nodes(cst.FunctionDef)}


def found() -> dict[int, Draft]:
    return {draft.line: draft for draft in UnfusedElementwise().find(context())}


def test_what_a_function_calls_is_in_front_of_the_line_that_calls_it() -> None:
    run = context()
    costs = [cost for cost in run.profile.lines if cost.function == "currents"]
    assert [cost.line for cost in in_order(run, costs)] == [2, 3, 6, 7, 8]
    assert calls_of(run, run.source(FILE), functions(run)["currents"]) == 60


def test_the_kernels_of_what_it_calls_are_part_of_what_compiling_it_saves() -> None:
    drafts = found()
    assert drafts[1].cost_ms == 8
    assert drafts[5].cost_ms == 20
    change = drafts[5].change
    assert isinstance(change, Replace)
    assert change.options == ("", "60")
    assert isinstance(change.otherwise, Together)
    fused, calls = change.otherwise.changes
    assert change.places == fused.places
    assert isinstance(fused, Fuse)
    assert [line for _, line in fused.places] == [2, 3, 6, 7, 8]
    assert calls == CompiledCalls(fused.places, 60)
    assert "what it calls" in drafts[5].message
    assert "what it calls" not in drafts[1].message


def test_a_wait_in_its_loop_keeps_a_function_from_being_compiled() -> None:
    run = context()
    source = run.source(FILE)
    assert breaks_at(run, source, functions(run)["solve"]) == 13
    assert breaks_at(run, source, functions(run)["currents"]) is None
    draft = found()[10]
    assert draft.change is None
    assert not draft.saving_ms
    assert not draft.fixes
    assert "a loop in the function waits" in draft.message


TAGGER = """\
import torch
from torch import nn

class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.LSTM(8, 8)

    def forward(self, x):
        x = torch.sin(x) * 2
        states, _ = self.layer(x)
        return torch.cos(states)

class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = Words()

    def mixed(self, x):
        return torch.exp(x)

    def forward(self, x):
        x = torch.tanh(x)
        for _ in range(2):
            x = torch.atan(self.mixed(x))
            x = self.words(x)
        return torch.erf(x)

class Once(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = Words()

    def forward(self, x):
        x = torch.tanh(x)
        x = self.words(x)
        return torch.erf(x)
"""
#: Of its lines that compute: the function, and the function that the line calls.
COMPUTING = {
    10: ("Words.forward", ""),
    11: ("Words.forward", ""),
    12: ("Words.forward", ""),
    20: ("Tagger.mixed", ""),
    23: ("Tagger.forward", ""),
    25: ("Tagger.forward", "Tagger.mixed"),
    26: ("Tagger.forward", "Words.forward"),
    27: ("Tagger.forward", ""),
    35: ("Once.forward", ""),
    36: ("Once.forward", "Words.forward"),
    37: ("Once.forward", ""),
}


@pytest.mark.parametrize("name", ["Tagger", "Once"])
def test_what_a_recurrent_layer_leaves_as_it_was(name: str) -> None:
    """Compared with what torch.compile hands to its backend."""
    lines = TAGGER.split("\n")
    for line in COMPUTING:
        lines[line - 1] += "  #> cost step_ms=4 calls=2" + ("; op aten::lstm count=2" if line == 11 else "")
    example = read_example("\n".join(lines))
    every = {
        cost.line: replace(
            cost, function=COMPUTING[cost.line][0], called=tuple((FILE, one) for one in called if one)
        )
        for cost in example.profile.lines
        for called in [COMPUTING[cost.line][1:]]
    }
    run = Context(replace(example.profile, lines=tuple(every.values())), texts(example))
    inside = [cost for cost in every.values() if cost.function.split(".")[0] in (name, "Words")]
    left = {line for _, line in not_compiled(run, inside)}

    compiled = set[str]()

    def backend(graph: torch.fx.GraphModule, inputs: object) -> object:
        compiled.update(getattr(node.target, "__name__", "") for node in graph.graph.nodes)
        return graph.forward

    made: dict[str, Any] = {"__name__": __name__}
    exec(TAGGER, made)
    model = made[name]()
    torch._dynamo.reset()
    model.compile(backend=backend)
    model(torch.randn(3, 2, 8))
    computed = ("sin", "cos", "exp", "tanh", "atan", "erf")
    written = {line: word for line in every for word in computed if f"torch.{word}" in lines[line - 1]}
    expected = {line for line, word in written.items() if word in compiled}
    own = {cost.line for cost in inside}
    assert own & written.keys() - left == expected & own


def test_a_copy_to_the_device_does_not_stop_compiled_code() -> None:
    """Nor does the wait for it."""
    text = SCRIPT.replace("if m.sum() < 1:", "if len(v.cuda()) < 1:")
    assert "v.cuda()" in text
    run = context()
    lines = tuple(
        replace(cost, ops=tuple(op for op in cost.ops if "scalar" not in op.name))
        for cost in run.profile.lines
    )
    run = Context(replace(run.profile, lines=lines), lambda path: text)
    assert next(cost for cost in lines if cost.line == 13).syncs == 60
    assert breaks_at(run, run.source(FILE), functions(run)["solve"]) is None


CUT = """\
def mixed(v, w):
    return v @ w

def blend(v, w):
    v = v.exp() * 2
    return mixed(v, w) + 1
"""


def test_a_product_in_what_a_function_calls_lies_between_its_passes() -> None:
    lines = CUT.splitlines()
    passes = (
        "  #> cost step_ms=4 device_ms=4 calls=60; kernel vectorized_elementwise_kernel count=120 device_ms=4"
    )
    lines[1] += "  #> cost step_ms=4 device_ms=4 calls=60; op aten::mm count=60 launches=60 device_ms=4"
    for at in (4, 5):
        lines[at] += passes
    example = read_example("\n".join(lines) + "\n")
    costs = tuple(
        replace(
            cost,
            function="mixed" if cost.line == 2 else "blend",
            called=((FILE, "mixed"),) if cost.line == 6 else (),
        )
        for cost in example.profile.lines
    )
    found = Context(replace(example.profile, lines=costs), texts(example))
    assert list(UnfusedElementwise().find(found)) == []


def test_idle_time_of_a_function_s_lines_is_evidence() -> None:
    slow = context()
    waits = tuple(replace(cost, idle_ms=2.0, launches=120.0) for cost in slow.profile.lines)
    idle = Context(replace(slow.profile, lines=waits), slow.text)
    of_gate = {draft.line: draft for draft in UnfusedElementwise().find(idle)}[1]
    assert [one.value for one in of_gate.evidence if one.metric == "idle while launching"] == [4.0]
    assert not [one for one in found()[1].evidence if one.metric == "idle while launching"]


def test_other_kernels_at_its_lines_are_evidence_beside_the_passes() -> None:
    """The rolls of a stencil are no elementwise kernels by name, and compiled code has none of them."""
    run = context()
    rolled = tuple(replace(cost, step_ms=7.0, device_ms=7.0) for cost in run.profile.lines)
    of_gate = {
        draft.line: draft
        for draft in UnfusedElementwise().find(Context(replace(run.profile, lines=rolled), run.text))
    }[1]
    assert {one.metric: one.value for one in of_gate.evidence if one.unit == "ms"} == {
        "elementwise kernels": 8.0,
        "other work there": 6.0,
    }
    assert "What else these lines do" in of_gate.message
    assert "What else these lines do" not in found()[1].message


def test_what_a_line_without_kernels_calls_is_compiled_as_well() -> None:
    run = context()
    lines = tuple(replace(cost, kernels=()) if cost.line == 6 else cost for cost in run.profile.lines)
    bare = Context(replace(run.profile, lines=lines), run.text)
    draft = {draft.line: draft for draft in UnfusedElementwise().find(bare)}[5]
    assert isinstance(draft.change, Replace)
    assert [line for _, line in draft.change.places] == [2, 3, 6, 7, 8]
    assert draft.cost_ms == 16


def test_a_product_at_its_lines_is_no_evidence() -> None:
    run = context()
    product = Op("aten::mm", "forward", 1.0, 3.0, 3.0, launches=1.0)
    lines = [replace(cost, ops=(product,)) for cost in run.profile.lines]
    assert reached_ms(lines) == len(lines) * (4.0 - 3.0)


WALKS = """\
def shrink(model, limit):
    '''Each tensor on its own.'''
    for p in model.parameters():  #> cost calls=201
        size = p.grad.abs().max() + 1e-6  #> cost calls=200 launches=400
        p.grad.mul_(limit / size).clamp_(-1, 1)  #> cost calls=200 launches=600

def few(parts):
    for part in parts:  #> cost calls=50
        part.exp_().mul_(2)  #> cost calls=40 launches=80

def rows(model):
    return [p.grad.abs().max() for p in model.parameters()]
    #^ cost calls=1 launches=400; op aten::abs count=200; op aten::max count=200

def pair(a, b):
    return torch.stack([one.exp() for one in (a, b)])  #> cost calls=30; op aten::exp count=60

def outer(model, x):
    shrink(model, 1.0)  #> cost calls=1
    return x.exp() * 2  #> cost calls=1 launches=2
"""


def walks() -> Context:
    example = read_example(WALKS)
    names = {
        one: name for name, lines in {"shrink": range(3, 6), "outer": range(18, 20)}.items() for one in lines
    }
    costs = tuple(
        replace(
            cost,
            function=names.get(cost.line, f"other{cost.line}"),
            called=((FILE, "shrink"),) if cost.line == 18 else (),
        )
        for cost in example.profile.lines
    )
    return Context(replace(example.profile, lines=costs), texts(example))


def test_a_function_that_is_one_loop_is_called_as_often_as_the_loop_begins() -> None:
    run = walks()
    source = run.source(FILE)
    assert calls_of(run, source, functions(run)["shrink"]) == 1
    assert calls_of(run, source, functions(run)["few"]) == 10
    assert calls_of(run, source, functions(run)["outer"]) == 1


def test_a_loop_over_parameters_is_not_compiled() -> None:
    """torch.compile writes each turn out: that took a minute, and the step was slower (self_distillation)."""
    run = walks()
    source = run.source(FILE)
    found = {name for name, function in functions(run).items() if unrolled(run, source, function)}
    assert found == {"shrink", "rows", "outer"}


def test_a_formula_with_a_finding_of_its_own_is_compiled_with_the_rest() -> None:
    text = """\
import torch

def block(x, w):
    x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
    y = x.exp() * 2
    return y / (y + w)
"""
    lines = text.splitlines()
    passes = (
        "  #> cost step_ms=4 device_ms=4 calls=1; kernel vectorized_elementwise_kernel count=4 device_ms=4"
    )
    for at in (4, 5, 6):
        lines[at - 1] += passes
    example = read_example("\n".join(lines) + "\n")
    (draft,) = UnfusedElementwise().find(Context(example.profile, texts(example)))
    assert draft.cost_ms == 8
    assert isinstance(draft.change, Replace)
    assert [line for _, line in draft.change.places] == [4, 5, 6]
    assert {one.metric: one.value for one in draft.evidence if one.unit == "ms"} == {
        "elementwise kernels": 8.0,
        "other work there": 4.0,
    }


#: A planning horizon of 24 turns: each turn has 8 operators here and 8 in what it calls.
HORIZON = """\
import torch

def move(state):
    return state.sin() * 2 - state.cos()
    #^ cost step_ms=4 device_ms=4 calls={turns} launches=96; op aten::sin count={calls} launches={calls}
    #^ kernel vectorized_elementwise_kernel count=96 device_ms=4

def plan(state):
    total = state.square()  #> cost calls=1 device_ms=0.1 step_ms=0.1; op aten::pow count=1 launches=1
    for _ in range(horizon):
        state = move(state)  #> cost calls={turns}
        total = total + state.abs().sqrt().exp() * state - 1
        #^ cost step_ms=9 device_ms=4 idle_ms=5 calls={turns} launches=96
        #^ op {op} count={calls} launches={calls}
        #^ kernel vectorized_elementwise_kernel count=96 device_ms=4
    return total

for state in states:
    plan(state)  #> cost calls=1
"""


def _horizon(turns: int, op: str = "aten::mul") -> dict[str, Draft]:
    example = read_example(HORIZON.format(turns=turns, calls=8 * turns, op=op))
    costs = tuple(
        replace(
            cost,
            function=function,
            called=((FILE, {"plan": "move"}.get(function, "plan")),) if cost.calls and not cost.ops else (),
        )
        for cost in example.profile.lines
        for function in ["move" if cost.line <= 5 else "plan" if cost.line <= 11 else "<module>"]
    )
    found = UnfusedElementwise().find(Context(replace(example.profile, lines=costs), texts(example)))
    return {draft.message.split("`")[1]: draft for draft in found}


def test_a_long_horizon_is_not_compiled_but_what_it_calls_is() -> None:
    found = _horizon(24)
    assert [fix.title for fix in found["move"].fixes] == ["Compile move"]
    assert not found["plan"].fixes
    assert found["plan"].change is None
    assert found["plan"].saving_ms == 0
    assert "writes out each turn" in found["plan"].message
    assert found["plan"].cost_ms == pytest.approx(4 + 5)


def test_a_short_one_is_compiled_whole() -> None:
    assert [fix.title for fix in _horizon(8)["plan"].fixes] == ["Compile plan"]


def test_a_long_loop_around_compiled_code_is_not_compiled_again() -> None:
    assert set(_horizon(24, op='"Torch-Compiled Region: 0/0"')) == {"move"}


def test_many_operators_without_a_loop_are_compiled() -> None:
    cost = LineCost(FILE, 1, "f", calls=2, ops=(Op("aten::mul", "forward", 800, 1.0, 1.0),))
    assert not written_out([cost], 2)
    assert written_out([replace(cost, calls=40)], 2)
