"""Whose loop it is: the user's, or one of torch's that the line calls."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.annotated import FILE, read_example, texts
from warpline.rulekit import Context
from warpline.rules.parameter_loop import ParameterLoop
from warpline.wire.dataflow import DIRECT, MODULE, Dataflow, OperatorSite

CODE = """
for name, value in target.state_dict().items():
    value.copy_(source[name])
    #^ cost step_ms=6 cpu_ms=6 launches=40 calls=40; op aten::copy_ count=40 cpu_ms=6
"""


@pytest.mark.parametrize(("via", "lines"), [(DIRECT, [2]), (MODULE, [])])
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
