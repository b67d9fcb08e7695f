"""Biases of convolutions before a batch norm, whose value is written elsewhere."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.annotated import read_example, texts
from warpline.diagnosis.diagnose import diagnose
from warpline.model.report import Finding
from warpline.wire.births import Argument, Holder

HEAD = "from torch import nn\n"
TAIL = """\
net = nn.Sequential(unit(3), unit(64), {head})
logits = net(images)
#^ cost device_ms=40; op aten::add_ device_ms=4 outer=false shapes=[[32,64,56,56],[1,64,1,1]]
"""
CONV = "#^ site module type=Conv2d bias=true count=2"
FIELD = f"""\
class Options:
    bias: bool = True
def unit(i, opt=Options()):
    return nn.Sequential(nn.Conv2d(i, 64, 3, bias=opt.bias), nn.BatchNorm2d(64))
    {CONV}
"""
FACTORY = f"""\
WITH_BIAS = True
def unit(i):
    return nn.Sequential(nn.Conv2d(i, 64, 3, 1, 1, 1, 1, WITH_BIAS), nn.BatchNorm2d(64))
    {CONV}
"""


def found(code: str, held: Holder, head: str = "nn.Flatten()") -> Finding:
    example = read_example(HEAD + code + TAIL.format(head=head))
    arguments = (Argument("bias", True, True, held),)
    facts = replace(
        example.profile.facts,
        sites=tuple(replace(site, arguments=arguments) for site in example.profile.facts.sites),
    )
    (one,) = diagnose(replace(example.profile, facts=facts), texts(example)).findings
    assert one.rule == "conv-bias-before-norm"
    return one


@pytest.mark.parametrize(
    ("code", "held"),
    [
        (FIELD, Holder("field", "/example/train.py", 3, 17, "bias")),
        (FACTORY, Holder("variable", "/example/train.py", 2, 12, "WITH_BIAS")),
    ],
)
def test_it_is_changed_where_it_is_written(code: str, held: Holder) -> None:
    one = found(code, held)
    assert (one.line, one.fixes[0].edits[0].start[0]) == (held.line, held.line)


@pytest.mark.parametrize("other", ["Conv2d(64, 1, 1)", "Linear(64, 10)", "LayerNorm(64)"])
def test_not_where_another_layer_gets_it_too(other: str) -> None:
    head = f"nn.{other}\n#^ site module type={other.partition('(')[0]} bias=true\n"
    one = found(FIELD, Holder("field", "/example/train.py", 3, 17, "bias"), head)
    assert not one.fixes
    assert "from there too" in one.message
