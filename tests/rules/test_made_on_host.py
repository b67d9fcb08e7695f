"""Tensors that are created on the host: what may happen to them before they are moved."""

from __future__ import annotations

import pytest

from tests.annotated import read_example, texts
from warpline.diagnosis import diagnose
from warpline.model.report import Fix
from warpline.rulekit import Context, Draft
from warpline.rules.tensor_made_on_host import TensorMadeOnHost
from warpline.text.edits import apply

ONE = """\
import torch

def noise(x, device, g, bias):
    {line}  #> cost cpu_ms=12 idle_ms=11 step_ms=12{more}
    #^ site tensor op={op} device=cpu to=cuda:0 bytes=9 calls=1

for images in loader:
    train(images, noise(images, "cuda", g, bias))  #> cost device_ms=30
"""
APART = """\
import torch

def noise(x, device, bias):
    {made}  #> cost cpu_ms=12 idle_ms=11 step_ms=12; site tensor op=randn device=cpu to=cuda:0 bytes=9 calls=1
    {between}
    return z.to(device)  #> cost device_ms=3 copy_ms=3 step_ms=3; use tensor

for images in loader:
    train(images, noise(images, "cuda", bias))  #> cost device_ms=30
"""


def found(code: str) -> tuple[str, Draft]:
    example = read_example(code)
    (draft,) = TensorMadeOnHost().find(Context(example.profile, texts(example)))
    return example.text, draft


def after(text: str, fix: Fix, line: int) -> str:
    return apply(text, fix.edits).splitlines()[line - 1].strip()


@pytest.mark.parametrize(
    ("line", "op", "edited", "safe"),
    [
        (
            "return torch.empty(2, 3).normal_().to(x.device)",
            "empty",
            "return torch.empty(2, 3, device=x.device).normal_()",
            False,
        ),
        (
            "return (torch.rand(len(x)) < 0.3).to(device)",
            "rand",
            "return (torch.rand(len(x), device=device) < 0.3)",
            False,
        ),
        (
            "return torch.zeros(9).fill_(2).unsqueeze(0).cuda()",
            "zeros",
            'return torch.zeros(9, device="cuda").fill_(2).unsqueeze(0)',
            True,
        ),
        (
            "return torch.arange(9).pin_memory().to(device, non_blocking=True)",
            "arange",
            "return torch.arange(9, device=device)",
            True,
        ),
        (
            "return torch.arange(9).div(9).to(device, torch.float16)",
            "arange",
            "return torch.arange(9, device=device).div(9).to(torch.float16)",
            False,
        ),
        (
            "return torch.ones(9).to(device, dtype=torch.float16)",
            "ones",
            "return torch.ones(9, device=device, dtype=torch.float16)",
            True,
        ),
    ],
)
def test_what_is_done_to_it_in_its_statement_works_on_the_device(
    line: str, op: str, edited: str, safe: bool
) -> None:
    text, draft = found(ONE.format(line=line, op=op, more=""))
    (fix,) = draft.fixes
    assert after(text, fix, 4) == edited
    assert (fix.applicability == "safe") is safe


NODES = "; node aten.randn.default args=[[9]] shape=[9]; node aten.mul.Tensor args=[%0,{other}] shape=[9]"


def test_numbers_by_name_are_known_from_the_recorded_step() -> None:
    line = "return torch.randn(9).mul(bias).to(device)"
    text, draft = found(ONE.format(line=line, op="randn", more=NODES.format(other=0.5)))
    assert after(text, draft.fixes[0], 4) == "return torch.randn(9, device=device).mul(bias)"
    _, draft = found(
        ONE.format(line=line, op="randn", more=NODES.format(other="%9") + "; tensor %9 shape=[9]")
    )
    assert draft.fixes == ()


@pytest.mark.parametrize(
    ("line", "op", "reason"),
    [
        ("return torch.randn(9, generator=g).to(device)", "randn", "generator is the host's"),
        ("return torch.empty(9).normal_(generator=g).to(device)", "empty", "another one moves it"),
        ("return torch.empty(9, pin_memory=True).to(device)", "empty", "memory of the host"),
        ("return torch.randn(9).mul(bias).to(device)", "randn", "another one moves it"),
        ("return torch.tensor(torch.ones(9).numpy() + 1).add(bias).to(device)", "tensor", "another one"),
        ("return torch.randn(9).apply_(abs).to(device)", "randn", "another one moves it"),
    ],
)
def test_what_needs_the_host_stays_there(line: str, op: str, reason: str) -> None:
    _, draft = found(ONE.format(line=line, op=op, more=""))
    assert draft.fixes == ()
    assert reason in draft.message


@pytest.mark.parametrize(
    ("made", "between", "offered"),
    [
        ("z = torch.randn(9)", "pass", True),
        ("z = torch.randn(9).abs()", "pass", True),
        ("z = torch.randn(9)", "z = z * bias", False),
        ("z = torch.randn(9)", "show(z.numpy())", False),
        ("z = smooth(torch.randn(9))", "pass", False),
    ],
)
def test_between_two_statements_nothing_reads_it(made: str, between: str, offered: bool) -> None:
    text, draft = found(APART.format(made=made, between=between))
    assert bool(draft.fixes) is offered
    if offered:
        assert "torch.randn(9, device=device)" in after(text, draft.fixes[0], 4)


AGAIN = """\
import torch

def noise(x, device, bias):
    z = torch.randn(9{others})  #> cost cpu_ms=12 idle_ms=11 step_ms=12
    #^ site tensor op=randn device=cpu to=cuda:0 bytes=9
    {between}
    {condition}
        {moved}  #> cost device_ms=3 copy_ms=3 step_ms=3; use tensor
    {after}
    return z + bias

for images in loader:
    train(images, noise(images, "cuda", bias))  #> cost device_ms=30
"""
MOVED = "z = z.to(device)"


@pytest.mark.parametrize(
    ("moved", "condition", "device"),
    [
        (MOVED, "if USE_GPU:", 'device if USE_GPU else "cpu"'),
        ("z = z.cuda()", "if torch.cuda.is_available() and not self.on_cpu:",
         '"cuda" if torch.cuda.is_available() and not self.on_cpu else "cpu"'),
        ("z, bias = z.cuda(), bias.cuda()", "if USE_GPU:", '"cuda" if USE_GPU else "cpu"'),
    ],
)  # fmt: skip
def test_a_name_that_is_moved_under_a_condition(moved: str, condition: str, device: str) -> None:
    code = AGAIN.format(others="", between="pass", condition=condition, moved=moved, after="pass")
    text, draft = found(code)
    assert after(text, draft.fixes[0], 4) == f"z = torch.randn(9, device={device})"
    assert draft.fixes[0].applicability == "unsafe"


def test_a_name_that_is_moved_in_any_case() -> None:
    code = AGAIN.format(others="", between="pass", condition="if True:", moved=MOVED, after="pass")
    text, draft = found(code.replace("    if True:\n        z", "    z"))
    assert after(text, draft.fixes[0], 4) == "z = torch.randn(9, device=device)"


@pytest.mark.parametrize(
    ("others", "between", "condition", "moved", "after_it"),
    [
        ("", "z = filtered(z)", "if USE_GPU:", MOVED, "pass"),
        ("", "USE_GPU = len(x) > 9", "if USE_GPU:", MOVED, "pass"),
        ("", "pass", "if next(turns):", MOVED, "pass"),
        ("", "pass", "if bias is None:\n        z = z * 2\n    elif USE_GPU:", MOVED, "pass"),
        ("", "pass", "for _ in range(2):", MOVED, "pass"),
        ("", "pass", "if USE_GPU:", MOVED, "z = z.to(device)  #> use tensor"),
        (", generator=g", "pass", "if USE_GPU:", MOVED, "pass"),
        ("", "pass", "if USE_GPU:", "near = z.to(device)", "pass"),
    ],
)
def test_what_else_may_read_it_keeps_it(
    others: str, between: str, condition: str, moved: str, after_it: str
) -> None:
    code = AGAIN.format(others=others, between=between, condition=condition, moved=moved, after=after_it)
    _, draft = found(code)
    assert draft.fixes == ()


def test_its_copy_is_no_finding_of_its_own() -> None:
    """It would be made in pinned memory, and better on the device."""
    code = AGAIN.format(others="", between="pass", condition="if USE_GPU:", moved=MOVED, after="pass")
    copied = "cost device_ms=3 copy_ms=3 step_ms=3; kernel Memcpy_HtoD_Pageable kind=copy device_ms=3"
    example = read_example(code.replace("cost device_ms=3 copy_ms=3 step_ms=3", copied))
    findings = diagnose(example.profile, texts(example)).findings
    assert [finding.rule for finding in findings] == ["tensor-made-on-host"]
