"""Whose loop it is: the user's, or one of torch's that the line calls."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.annotated import FILE, read_example, texts
from warpline.model.change import Replace
from warpline.rulekit import Context
from warpline.rules.parameter_loop import ParameterLoop
from warpline.wire.dataflow import DIRECT, MODULE, Dataflow, OperatorSite
from warpline.wire.probing import DATA

CODE = """
for name, value in target.state_dict().items():
    value.copy_(source[name])
    #^ cost step_ms=6 cpu_ms=6 launches=40 calls=40; op aten::copy_ count=40 cpu_ms=6
"""


@pytest.mark.parametrize(("via", "lines"), [(DIRECT, [1]), (MODULE, [])])
def test_a_loop_inside_torch_is_not_the_users(via: str, lines: list[int]) -> None:
    example = read_example(CODE.lstrip())
    flow = Dataflow(
        missing="",
        names=("aten.copy_.default",),
        sites=(OperatorSite(FILE, 2, "", via),),
        name=(0,),
        site=(0,),
        arguments=([],),
        outputs=((),),
    )
    facts = replace(example.profile.facts, dataflow=flow)
    context = Context(replace(example.profile, facts=facts), texts(example))
    assert [draft.line for draft in ParameterLoop().find(context)] == lines


ADAM = """\
#> device kind=cpu
for p, m, v in zip(own, first, second):
    m.lerp_(p.grad, 0.1)
    #^ cost step_ms=3 cpu_ms=3 device_ms={busy} calls=12; op aten::lerp_ count=12 cpu_ms=3 shapes=[[640,640]]
    v.mul_(0.99).addcmul_(p.grad, p.grad, value=0.01)
    #^ cost step_ms=6 cpu_ms=6 device_ms={busy} calls=12; op aten::mul_ count=12 cpu_ms=3 shapes=[[640,640]]
    p.addcdiv_(m, v.sqrt().add_(1e-8), value=-0.1)
    #^ cost step_ms=9 cpu_ms=9 device_ms={busy} calls=12; op aten::sqrt count=12 cpu_ms=3 shapes=[[640,640]]
    #^ op aten::addcdiv_ count=12 cpu_ms=3 shapes=[[640,640],[640,640],[640,640]]
"""


@pytest.mark.parametrize(("busy", "by"), [(5.0, "optimizer"), (0.5, "lists")])
@pytest.mark.parametrize(
    ("tensors", "operator"),
    [(12, "aten.addcdiv_.default"), (4, "aten.addcdiv_.default"), (12, "aten.linear.default")],
)
def test_parameters_are_known_by_the_record(busy: float, by: str, tensors: int, operator: str) -> None:
    """No name and no optimizer tells that these are parameters. Where the arithmetic takes most time, a
    list of tensors saves little, and a fused optimizer saves passes over them. Layers read parameters, too:
    a line that adds what each of several layers computes updates none."""
    example = read_example(ADAM.format(busy=busy))
    values = range(tensors)
    flow = Dataflow(
        missing="",
        names=(operator,),
        sites=(OperatorSite(FILE, 4, "", DIRECT),),
        shapes=((640, 640),),
        dtypes=("float32",),
        name=(0,) * tensors,
        site=(0,) * tensors,
        arguments=tuple([f"%{value}"] for value in values),
        outputs=tuple((tensors + value,) for value in values),
        shape=(0,) * 2 * tensors,
        dtype=(0,) * 2 * tensors,
        parameters=tuple(values),
    )
    facts = replace(example.profile.facts, dataflow=flow)
    context = Context(replace(example.profile, facts=facts), texts(example))
    found = [(draft.line, getattr(draft.change, "by", "")) for draft in ParameterLoop().find(context)]
    assert found == ([(1, by)] if tensors > 8 and "linear" not in operator else [])


def test_a_parameter_is_one_without_its_gradient_too() -> None:
    """`m.lerp_(p.detach(), 0.1)` for tensors that have no name."""
    example = read_example(ADAM.format(busy=0.5))
    tensors = range(9)
    flow = Dataflow(
        missing="",
        names=("aten.detach.default", "aten.lerp_.Scalar"),
        sites=(OperatorSite(FILE, 3, "", DIRECT),),
        shapes=((640, 640),),
        dtypes=("float32",),
        name=(0, 1) * 9,
        site=(0,) * 18,
        arguments=tuple(one for t in tensors for one in ([f"%{t}"], [f"%{30 + t}", f"%{10 + t}", 0.1])),
        outputs=tuple(one for t in tensors for one in ((10 + t,), (50 + t,))),
        shape=(0,) * 60,
        dtype=(0,) * 60,
        parameters=tuple(tensors),
    )
    facts = replace(example.profile.facts, dataflow=flow)
    context = Context(replace(example.profile, facts=facts), texts(example))
    assert [draft.line for draft in ParameterLoop().find(context)] == [1]


def test_an_average_that_is_copied_is_tried_on_lists() -> None:
    example = read_example("#> device kind=cpu" + CODE)
    (draft,) = ParameterLoop().find(Context(example.profile, texts(example)))
    assert isinstance(draft.change, Replace) and draft.change.by == "lists"


HELPER = """\
def average(old, new):
    old.mul_(0.9).add_(new, alpha=0.1)
    #^ cost step_ms=6 cpu_ms=6 launches=80 calls=40; op aten::mul_ count=40 cpu_ms=3
def follow(teacher, student):
    {loop}
        #^ cost step_ms=1 cpu_ms=1 calls={calls}
def test(teacher, student):
    {other}
"""
LOOPED = "for pair in zip(teacher.parameters(), student.parameters()):\n        average(*pair)"
MAPPED = "list(map(average, teacher.parameters(), student.parameters()))"


@pytest.mark.parametrize(
    ("loop", "other", "lines"),
    [(LOOPED, "pass", [4]), (MAPPED, "pass", [4]), ("average(*student)", "pass", []), (LOOPED, MAPPED, [])],
)
def test_a_loop_may_call_what_updates_a_parameter(loop: str, other: str, lines: list[int]) -> None:
    code = HELPER.format(loop=loop, other=other, calls=40)
    if other == MAPPED:
        code = code.rstrip("\n") + "  #> cost step_ms=1 cpu_ms=1 calls=1\n"
    example = read_example(code)
    costs = tuple(
        replace(cost, function="average")
        if cost.line == 2
        else replace(cost, called=((FILE, "average"),), function="follow")
        for cost in example.profile.lines
    )
    context = Context(replace(example.profile, lines=costs), texts(example))
    assert [draft.line for draft in ParameterLoop().find(context)] == lines


NORMS = """
import torch
sizes = {{name: p.grad.{size} for name, p in net.named_parameters()}}
#^ cost step_ms=6 cpu_ms=6 launches=296 calls=1 syncs={syncs}; op aten::item dtypes=float shapes=[[]]
#^ op aten::linalg_vector_norm count=148 cpu_ms=6 outer=true
"""


@pytest.mark.parametrize(
    ("size", "syncs", "edit"),
    [("norm().item()", 148, True), ("norm().cpu()", 148, False), ("norm().item()", 1, False)],
)
def test_values_that_a_comprehension_reads_are_read_at_once(size: str, syncs: int, edit: bool) -> None:
    example = read_example(NORMS.lstrip().format(size=size, syncs=syncs))
    (draft,) = ParameterLoop().find(Context(example.profile, texts(example)))
    assert [fix.title for fix in draft.fixes] == (["Read all values at once"] if edit else [])
    assert edit or "call `torch._foreach_lerp_`" in draft.message


@pytest.mark.parametrize(("calls", "tensors"), [(40, 40), (1, 80)])
def test_a_round_may_multiply_twice(calls: int, tensors: int) -> None:
    """A comprehension's line runs once."""
    code = f"""\
#> device kind=cpu
for mine, other in zip(late.parameters(), net.parameters()):
    mine.data = mine.data * 0.9 + other.data * 0.1
    #^ cost step_ms=6 cpu_ms=6 launches=120 calls={calls}; op aten::mul count=80; op aten::add count=40
"""
    example = read_example(code)
    (draft,) = ParameterLoop().find(Context(example.profile, texts(example)))
    assert [one.value for one in draft.evidence if one.metric == "tensors"] == [tensors]
    assert getattr(draft.change, "options", None) == (str(tensors), DATA)
