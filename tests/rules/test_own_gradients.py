"""Formulas in functions with a backward pass of their own, and in helpers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.annotated import FILE, read_example, texts
from warpline.rulekit import Context, Draft, Rule
from warpline.rules.hand_written_activation import HandWrittenActivation
from warpline.rules.hand_written_attention import HandWrittenAttention
from warpline.rules.hand_written_loss import HandWrittenLoss
from warpline.rules.needless_checkpointing import NeedlessCheckpointing
from warpline.text.edits import apply
from warpline.wire.dataflow import Dataflow

torch = pytest.importorskip("torch")

OWN = """\
import torch

class Gate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.tanh(torch.nn.functional.softplus(x))  #> cost device_ms=9

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)  #> cost device_ms=6
        t = torch.tanh(torch.nn.functional.softplus(x))  #> cost device_ms=9
        return gradient * (t + x * s * (1 - t * t))  #> cost device_ms=15

def gate(x):
    return Gate.apply(x)

x = torch.randn(64, 64, requires_grad=True)
gate(x).sum()
"""
HELPED = """\
import torch

def shares(x):
    x = x - x.amax(-1, keepdim=True)  #> cost device_ms=5
    e = x.exp()  #> cost device_ms=5
    return e / e.sum(-1, keepdim=True)  #> cost device_ms=5

def attend(q, k, v):
    scores = q @ k.mT * 0.25  #> cost device_ms=5
    return shares(scores) @ v  #> cost device_ms=5

q, k, v = torch.randn(3, 2, 4, 32, 16)
attend(q, k, v)
"""
AGAIN = """\
#> memory free_bytes=60000000000
import functools
import torch
from torch.utils.checkpoint import checkpoint

saving = functools.partial(checkpoint, use_reentrant=False)
w = torch.nn.Parameter(torch.randn(8, 8))

def body(x):
    return torch.tanh(x @ w)
    #^ cost step_ms=60 device_ms=60 recompute_ms=20
    #^ op aten::mm phase=recompute count=8 device_ms=9 shapes=[[512,512],[512,512]] dtypes=float

def stage(x):
    return saving(body, x)  #> cost step_ms=0.1

loss = stage(torch.randn(8, 8)).sum()
loss.backward()  #> cost step_ms=0.1
"""


def drafts(text: str, rule: Rule, called: dict[int, tuple[str, ...]] | None = None) -> list[Draft]:
    """What the rule finds, with the operators recorded as the runner does; ``called``: functions by line."""
    example = read_example(text)
    flow = recorded(example.text)
    functions = {frame.line: frame.function for frame in flow.frames}
    lines = tuple(
        replace(
            cost,
            function=functions.get(cost.line, "Gate.backward" if "Gate" in text else "<module>"),
            called=tuple((FILE, name) for name in (called or {}).get(cost.line, ())),
        )
        for cost in example.profile.lines
    )
    facts = replace(example.profile.facts, dataflow=flow)
    return list(rule.find(Context(replace(example.profile, lines=lines, facts=facts), texts(example))))


def recorded(text: str) -> Dataflow:
    from warpline.capture.runner.dataflow.mode import Recording
    from warpline.capture.runner.lines.names import QualifiedNames
    from warpline.capture.runner.lines.userfiles import UserFiles

    sites: Any = SimpleNamespace(user_files=UserFiles([str(Path(FILE).parent)], []), names=QualifiedNames())
    recording = Recording(sites, modules=lambda: [])
    recording.start()
    try:
        exec(compile(text, FILE, "exec"), {})
    finally:
        flow = recording.stop()
    return flow


def test_a_function_is_replaced_where_it_is_applied() -> None:
    (found,) = drafts(OWN, HandWrittenActivation())
    text = read_example(OWN).text
    assert "Gate.apply" in text.splitlines()[found.line - 1]
    assert "Mish" in found.message
    assert found.cost_ms == 39
    assert gradient(apply(text, found.fixes[0].edits)) == pytest.approx(gradient(text), abs=1e-5)


def gradient(text: str) -> list[float]:
    scope: dict[str, Any] = {}
    exec(text, scope)
    x = torch.linspace(-5, 5, 12, requires_grad=True)
    (found,) = torch.autograd.grad(scope["gate"](x).square().sum(), x)
    return found.tolist()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("(x,) = ctx.saved_tensors", "x = ctx.saved_tensors[0]"),
        ("gradient * (t + x * s * (1 - t * t))", "t * gradient + gradient * x * s * (1 - t ** 2)"),
        (
            "def gate(x):\n    return Gate.apply(x)",
            "softened = Gate.apply\n\ndef gate(x):\n    return softened(x)",
        ),
    ],
)
def test_functions_that_give_back_the_derivative_have_an_edit(old: str, new: str) -> None:
    (found,) = drafts(OWN.replace(old, new), HandWrittenActivation())
    text = read_example(OWN.replace(old, new)).text
    edited = apply(text, found.fixes[0].edits)
    assert "F.mish(x)" in edited or "functional.mish(x)" in edited
    assert gradient(edited) == pytest.approx(gradient(text), abs=1e-5)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("gradient * (t + x * s * (1 - t * t))", "gradient * (t + x * s * (1 - t * t)).clamp(min=0)"),
        ("gradient * (t + x * s * (1 - t * t))", "gradient"),
        ("gradient * (t + x * s * (1 - t * t))", "gradient + (t + x * s * (1 - t * t))"),
        ("gradient * (t + x * s * (1 - t * t))", "gradient.sign() * (t + x * s * (1 - t * t))"),
        ("ctx.save_for_backward(x)", "ctx.save_for_backward(x.relu())"),
        ("    @staticmethod\n    def forward", "    @staticmethod\n    @torch.no_grad()\n    def forward"),
    ],
)
def test_other_gradients_go_with_the_function(old: str, new: str) -> None:
    (found,) = drafts(OWN.replace(old, new), HandWrittenActivation())
    assert "`Gate` has a backward pass of its own" in found.message
    assert not found.fixes


def test_attention_with_the_softmax_in_a_helper_is_at_its_last_product() -> None:
    (found,) = drafts(HELPED, HandWrittenAttention())
    assert found.line == read_example(HELPED).text.splitlines().index("    return shares(scores) @ v") + 1


def test_checkpoint_under_another_name_is_called_where_the_function_is_entered() -> None:
    lines = read_example(AGAIN).text.splitlines()
    at = {line: number for number, line in enumerate(lines, 1)}
    called = {at["    return saving(body, x)"]: ("body",), at["loss.backward()"]: ("body",)}
    (found,) = drafts(AGAIN, NeedlessCheckpointing(), called)
    assert found.line == at["    return saving(body, x)"]


ENTROPY = """\
import torch

def focal(x, y):
    p = torch.sigmoid(x)  #> cost device_ms=5
    ce = -(y * torch.log(p + 1e-8) + (1 - y) * torch.log(1 - p + 1e-8))  #> cost device_ms=20
    return (ce * (y - p).abs()).sum()  #> cost device_ms=5

def gated(x):
    return x * torch.sigmoid(x)  #> cost device_ms=5

focal(torch.randn(8, 8), torch.rand(8, 8))
gated(torch.randn(8, 8))
"""


def test_a_part_of_a_loss_is_no_activation() -> None:
    (found,) = drafts(ENTROPY, HandWrittenActivation())
    assert "SiLU" in found.message
    (whole,) = drafts(ENTROPY, HandWrittenLoss())
    assert "Binary cross entropy" in whole.message
