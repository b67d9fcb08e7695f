"""Biases of convolutions before a batch norm, whose value is written elsewhere."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.annotated import FILE, read_example, texts
from warpline.diagnosis.diagnose import diagnose
from warpline.model.report import Finding
from warpline.rulekit import Context
from warpline.rulekit.graph.biased import Biased
from warpline.rules import conv_bias_before_norm
from warpline.rules.conv_bias_before_norm import ConvBiasBeforeNorm
from warpline.text.edits import apply
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


ROWS = """\
from torch import nn
def unit(i, o):
{unit}
net = nn.Sequential(unit(3, 64), unit(64, 64))
{after}
logits = net(images)
#^ cost device_ms=40; op aten::add_ device_ms=4 outer=false shapes=[[32,64,56,56],[1,64,1,1]]
"""
CONV_AND_NORM = "    conv = nn.Conv2d(i, o, 3)\n    {more}return nn.Sequential({row})"


def edited(unit: str, after: str = "pass") -> str:
    """The text after the fix, the message where there is none, or nothing where nothing is found."""
    example = read_example(ROWS.format(unit=unit, after=after))
    findings = diagnose(example.profile, texts(example)).findings
    if not findings:
        return ""
    (one,) = findings
    return apply(example.text, one.fixes[0].edits) if one.fixes else one.message


@pytest.mark.parametrize(
    "unit",
    [
        CONV_AND_NORM.format(more="", row="conv, nn.BatchNorm2d(o), nn.ReLU()"),
        CONV_AND_NORM.format(more="norm = nn.BatchNorm2d(o)\n    ", row="*[conv, norm, nn.ReLU()]"),
        CONV_AND_NORM.format(
            more="nn.init.kaiming_normal_(conv.weight)\n    ", row="conv, nn.BatchNorm2d(o)"
        ),
        "    row = []\n    row.append(nn.Conv2d(i, o, 3))\n    row.append(nn.BatchNorm2d(o))\n"
        "    return nn.Sequential(*row)",
    ],
)
def test_a_layer_is_followed_to_its_place_in_the_row(unit: str) -> None:
    assert "o, 3, bias=False)" in edited(unit)


@pytest.mark.parametrize(
    "unit",
    [
        CONV_AND_NORM.format(more="", row="conv, nn.GroupNorm(8, o)"),
        CONV_AND_NORM.format(more="again = conv\n    ", row="conv, nn.BatchNorm2d(o)"),
        CONV_AND_NORM.format(more="nn.init.zeros_(conv.bias)\n    ", row="conv, nn.BatchNorm2d(o)"),
        CONV_AND_NORM.format(more="conv = nn.Identity()\n    ", row="conv, nn.BatchNorm2d(o)"),
        CONV_AND_NORM.format(more="", row="conv, nn.BatchNorm2d(o), conv, nn.ReLU()"),
        "    row = []\n    row.append(nn.Conv2d(i, o, 3))\n    row.append(nn.ReLU())\n"
        "    row.append(nn.BatchNorm2d(o))\n    return nn.Sequential(*row)",
        "    row, other = [], []\n    row.append(nn.Conv2d(i, o, 3))\n    other.append(nn.BatchNorm2d(o))\n"
        "    return nn.Sequential(*row, *other)",
    ],
)
def test_another_layer_between_or_another_use_is_no_such_place(unit: str) -> None:
    assert edited(unit) == ""


@pytest.mark.parametrize(
    ("set_up", "refused"),
    [
        ("if isinstance(m, nn.Conv2d):\n        nn.init.zeros_(m.bias)", True),
        ("if isinstance(m, (nn.Linear, nn.Conv2d)):\n        m.bias.data.zero_()", True),
        ("if hasattr(m, 'bias'):\n        m.bias.data.zero_()", True),
        ("if isinstance(m, nn.Conv2d) and m.bias is not None:\n        nn.init.zeros_(m.bias)", False),
        (
            "if isinstance(m, nn.Conv2d):\n        if m.bias is not None:\n            m.bias.data.zero_()",
            False,
        ),
        ("if isinstance(m, nn.Linear):\n        nn.init.zeros_(m.bias)", False),
    ],
)
def test_a_bias_that_is_set_up_stays(set_up: str, refused: bool) -> None:
    unit = CONV_AND_NORM.format(more="", row="conv, nn.BatchNorm2d(o), nn.ReLU()")
    found = edited(unit, f"for m in net.modules():\n    {set_up}")
    assert ("`m.bias` is None then" in found) == refused
    assert ("bias=False" in found) != refused


KINDS = """\
from torch import nn
def unit(i, o, norm=nn.BatchNorm2d):
    layers = dict(conv=nn.Conv2d(i, o, 3), norm=norm(o))
    #^ site module type=Conv2d bias=true count={count}
    return nn.Sequential(*layers.values())
head = nn.Conv2d(64, {out}, {kernel})
#^ site module type=Conv2d bias=true
logits = head(net(images))
#^ cost device_ms=40; op aten::add_ device_ms=4 outer=false shapes=[[32,64,56,56],[1,64,1,1]]
"""


@pytest.mark.parametrize(
    ("given", "ran", "found"),
    [
        # The head is the only layer with its sizes, and all layers ran.
        ({}, ((64, True), (64, True), (1, False)), True),
        # Another one of the units' layers is not before a norm.
        ({}, ((64, True), (64, False), (1, False)), False),
        # One of the units has the head's sizes.
        ({"out": 64}, ((64, True), (64, True), (64, False)), False),
        # Not all layers ran: that one may be a unit's.
        ({"count": 3}, ((64, True), (64, True), (1, False)), False),
        ({"kernel": 1}, ((64, True), (64, True), (1, False)), False),
    ],
)
def test_what_another_site_made_is_not_this_one_s(
    given: dict[str, int], ran: tuple[tuple[int, bool], ...], found: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = {"count": 2, "out": 1, "kernel": 3}
    example = read_example(KINDS.format(**usual | given))
    out, kernel = (Argument(name, (usual | given)[key])
                   for name, key in (("out_channels", "out"), ("kernel_size", "kernel")))  # fmt: skip
    units, head = sorted(example.profile.facts.sites, key=lambda site: site.line)
    facts = replace(example.profile.facts, sites=(units, replace(head, arguments=(out, kernel))))
    place = FILE, 6
    recorded = [Biased((3, 3), channels, norm, at, place) for at, (channels, norm) in enumerate(ran)]
    monkeypatch.setattr(conv_bias_before_norm, "whole_graph", lambda flow: flow)
    monkeypatch.setattr(conv_bias_before_norm, "biased", lambda graph: recorded)
    context = Context(replace(example.profile, facts=facts), texts(example))
    drafts = list(ConvBiasBeforeNorm().find(context))
    assert [draft.line for draft in drafts] == ([3] if found else [])


#: One convolution before a batch norm and one before something else, each on a line of its own.
TWO = """\
#> steps step_ms=20
import torch
from torch import nn
class Shrunk(nn.Module):
    def __init__(self, wide):
        super().__init__()
        self.narrow = nn.Conv2d(wide, wide, 3)
        {site}
        self.norm = nn.BatchNorm2d(wide)

    def forward(self, x):
        return self.norm(self.narrow(x))
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 64, 1)
        #^ site module type=Conv2d bias=true with.out_channels=64 with.kernel_size=1

    def forward(self, x):
        return self.first(x).relu()
        #^ tensor %20 shape=[64,3,1,1]; tensor %21 shape=[64]
        #^ node aten.convolution.default args=[%9,%20,%21] shape=[8,64,56,56] function=Net.forward
        #^ node aten.relu.default args=[%0] shape=[8,64,56,56] function=Net.forward
        #^ cost device_ms=6; op aten::add_ device_ms=4 outer=false shapes=[[8,64,56,56],[1,64,1,1]]
def both(x):
    x = Net()(x)
    {second}
    return x
"""
NARROW = "#^ site module type=Conv2d bias=true with.out_channels=32 with.kernel_size=3"
SECOND = (
    "#^ tensor %22 shape=[32,64,3,3]; tensor %23 shape=[32]\n"
    "    #^ node aten.convolution.default args=[%1,%22,%23] shape=[8,32,56,56] function=both\n"
    "    #^ node aten.native_batch_norm.default args=[%2,%24,%25,%26,%27,True] shape=[8,32,56,56]\n"
    "    #^ tensor %24 shape=[32]; cost device_ms=3 calls=1\n"
    "    #^ op aten::add_ device_ms=2 outer=false shapes=[[8,32,56,56],[1,32,1,1]]"
)


@pytest.mark.parametrize(
    ("site", "second", "spent"),
    [
        (NARROW, SECOND, [2.0]),  # the other one's bias stays
        (NARROW, "", []),  # it was made, and does not run
        ("", "", []),  # it was not even made
    ],
)
def test_only_biases_that_a_norm_subtracts_count(site: str, second: str, spent: list[float]) -> None:
    example = read_example(TWO.format(site=site, second=second))
    drafts = ConvBiasBeforeNorm().find(Context(example.profile, texts(example)))
    assert [draft.cost_ms for draft in drafts] == spent
