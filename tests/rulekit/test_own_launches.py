"""Code with kernels that are launched by hand is compiled only where compiled code launches them alike."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.annotated import FILE, read_example, texts
from warpline.model.profile import LineCost
from warpline.rulekit import Context, Draft
from warpline.rulekit.own_launches import uncompilable
from warpline.rules.launch_bound import LaunchBound
from warpline.rules.unfused_elementwise import UnfusedElementwise
from warpline.wire.run import Site

CODE = """\
import torch
import triton
import triton.language as tl

@triton.jit
def smooth_kernel(source, out, n, stride, weight, BLOCK: tl.constexpr):
    at = source + tl.program_id(0) * stride + tl.arange(0, BLOCK)
    value = tl.load(at)
    tl.store(out + tl.program_id(0), tl.sum(value * weight))
{decorator}
def smooth(x, weight):
    out = torch.empty(len(x), device=x.device)  #> cost calls=1
    smooth_kernel[(len(x),)](x, out, x.shape[1], x.stride(0), {given}, BLOCK=64)
    #^ cost device_ms=2 calls=1 launches=1
    #^ kernel smooth_kernel count=1 device_ms=2
    return out  #> cost calls=1

def level(x, weight):
    scale = smooth(x, weight)  #> cost calls=1
    scaled = (x * scale).sigmoid() - x.tanh() + x.exp().mean()
    #^ cost device_ms=9 calls=1 launches=6; op aten::mul count=6 launches=6
    #^ kernel vectorized_elementwise_kernel count=6 device_ms=9
    return scaled
"""


def _context(
    facts: dict[str, Any] | None, decorator: str = "", given: str = "weight", kernel: str = "smooth_kernel"
) -> Context:
    code = CODE.format(decorator=decorator, given=given).replace(
        "kernel smooth_kernel c", f"kernel {kernel} c"
    )
    example = read_example(code)
    line = next(n for n, text in enumerate(example.text.split("\n"), 1) if "_kernel[(" in text)
    profile = example.profile
    if facts is not None:
        site = Site("triton", FILE, line, "smooth", {"kernel": "smooth_kernel", **facts})
        profile = replace(profile, facts=replace(profile.facts, sites=(*profile.facts.sites, site)))
    called = {"level": ((FILE, "smooth"),)}
    lines: list[LineCost] = []
    for cost in profile.lines:
        inside = "level" if cost.line > line + 1 else "smooth"
        calls = called.get(inside, ()) if "smooth(" in example.text.split("\n")[cost.line - 1] else ()
        lines.append(replace(cost, function=inside, called=calls))
    return Context(replace(profile, lines=tuple(lines)), texts(example))


def _draft(context: Context) -> Draft:
    (draft,) = UnfusedElementwise().find(context)
    return draft


NUMBERS = {"n": 512, "stride": 512, "BLOCK": 64}


@pytest.mark.parametrize(
    "facts",
    [
        {"numbers": NUMBERS, "floats": ["weight"]},
        {"numbers": NUMBERS},  # an older run: no whole number, and in no address
    ],
)
def test_a_float_is_passed_otherwise_by_compiled_code(facts: dict[str, Any]) -> None:
    draft = _draft(_context(facts))
    assert not draft.fixes
    assert draft.change is None
    assert "`smooth_kernel` is given a Python float" in draft.message


@pytest.mark.parametrize(
    ("facts", "decorator"),
    [
        ({"numbers": NUMBERS, "floats": []}, ""),  # the weight is a tensor
        ({"numbers": {**NUMBERS, "weight": 2}}, ""),
        (
            {"numbers": NUMBERS, "floats": ["weight"]},
            '@torch.library.custom_op("mine::smooth", mutates_args=())',
        ),
    ],
)
def test_what_compiled_code_launches_alike_is_compiled(facts: dict[str, Any], decorator: str) -> None:
    draft = _draft(_context(facts, decorator))
    assert [fix.title for fix in draft.fixes] == ["Compile level"]


def test_a_kernel_without_an_operator_stops_the_compiler() -> None:
    draft = _draft(_context(None, kernel="_ZN6cudapy8__main__6smoothE"))
    assert not draft.fixes
    assert "no operator of torch's" in draft.message


def test_a_record_without_launches_of_operators_says_nothing() -> None:
    context = _context(None)
    lines = [cost for cost in context.profile.lines if not cost.ops]
    assert uncompilable(context, lines) is not None
    plain = replace(context.profile, lines=tuple(lines))
    assert uncompilable(Context(plain, context.text), lines) is None


MODEL = """\
#> steps step_ms=40 device_busy_percent=30
model = Net().cuda()
for x in batches:
    loss = model(x).mean()
    #^ cost step_ms=25 device_ms=6 idle_ms=19 cpu_ms=25 launches=1500 {own}
    #^ op aten::mul count=1500 launches=1500
    loss.backward()
    #^ cost step_ms=15 device_ms=5 idle_ms=10 cpu_ms=15 launches=1000
"""


@pytest.mark.parametrize(("floats", "fixes"), [("[scale]", 0), ("[]", 2)])
def test_a_model_with_such_a_kernel_is_not_compiled(floats: str, fixes: int) -> None:
    code = MODEL.format(own=f"; site triton kernel=fuse floats={floats}".replace("scale", "'scale'"))
    example = read_example(code.replace("floats=['scale']", "floats=\"['scale']\""))
    (draft,) = LaunchBound().find(Context(example.profile, texts(example)))
    assert len(draft.fixes) == fixes
    assert (draft.change is not None) == bool(fixes)


#: A forecaster whose recurrent layer gets one hour after the other, or all of them.
FORECASTER = """\
#> steps step_ms=40 device_busy_percent=30
class Forecaster(nn.Module):
    def forward(self, hours):
        {around}
            state = self.advance(hours)
            #^ cost step_ms=25 device_ms=6 idle_ms=19 cpu_ms=25 launches=1500 calls=24
            #^ op aten::mul count=1500 launches=1500
        return state

    def advance(self, hour):
        found, self.state = self.cell(hour, self.state)
        #^ cost calls=24; op aten::{layer} count=24 launches=9
        return found

model = Forecaster().cuda()
for hours in batches:
    loss = model(hours).mean()  #> cost calls=1
    loss.backward()  #> cost step_ms=15 device_ms=5 idle_ms=10 cpu_ms=15 launches=1000 calls=1
"""


@pytest.mark.parametrize(
    ("around", "layer", "fixes"),
    [
        ("for hour in hours:", "_cudnn_rnn", 0),
        ("for hour in hours:", "_thnn_fused_gru_cell", 2),  # a cell, which is compiled
        ("if self.ready:", "_cudnn_rnn", 2),
    ],
)
def test_a_recurrent_layer_in_a_loop_leaves_the_loop_uncompiled(around: str, layer: str, fixes: int) -> None:
    example = read_example(FORECASTER.format(around=around, layer=layer))
    rows = example.text.split("\n")
    functions = {"self.advance(": "forward", "self.cell(": "advance"}
    called = {"self.advance(": "advance", "model(hours)": "forward"}

    def named(cost: LineCost, names: dict[str, str]) -> str:
        return next((name for text, name in names.items() if text in rows[cost.line - 1]), "")

    lines = tuple(
        replace(
            cost,
            function=named(cost, functions) or "<module>",
            called=((FILE, named(cost, called)),) if named(cost, called) else (),
        )
        for cost in example.profile.lines
    )
    (draft,) = LaunchBound().find(Context(replace(example.profile, lines=lines), texts(example)))
    assert len(draft.fixes) == fixes
    assert ("stops at each call of a recurrent layer" in draft.message) == (not fixes)
