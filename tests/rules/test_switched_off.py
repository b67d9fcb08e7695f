"""A script that switches TF32 off is told so at that line."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.annotated import FILE, read_example, texts
from warpline.rulekit import Context, Draft
from warpline.rules import rule_named
from warpline.text.edits import apply
from warpline.wire.births import Setting, UserFrame

SCRIPT = """\
#> device kind=cuda capability=(9,0); flags allow_tf32=false float32_matmul_precision=highest
import torch

def reproducible(seed):
    {line}

reproducible(1)
for x in batches:
    y = x @ w  #> cost step_ms=20 device_ms=20; op aten::mm device_ms=20 dtypes=float,float
"""
MATMUL, PRECISION = "torch.backends.cuda.matmul.allow_tf32", "float32_matmul_precision"


def found(line: str, *settings: Setting) -> tuple[str, Draft]:
    example = read_example(SCRIPT.format(line=line))
    facts = replace(example.profile.facts, settings=settings)
    rule = rule_named("fp32-matmul")
    assert rule is not None
    (draft,) = rule.find(Context(replace(example.profile, facts=facts), texts(example)))
    return example.text, draft


@pytest.mark.parametrize(
    ("line", "name", "value", "fixed"),
    [
        (f"{MATMUL} = False", MATMUL, False, f"{MATMUL} = True"),
        (
            'torch.set_float32_matmul_precision("highest")',
            PRECISION,
            "highest",
            'torch.set_float32_matmul_precision("high")',
        ),
    ],
)
def test_the_switch_is_turned_on_again(line: str, name: str, value: object, fixed: str) -> None:
    frame = UserFrame(FILE, 4, "reproducible")
    text, draft = found(line, Setting(name, value, (frame,)))
    assert draft.line == 4
    assert fixed in apply(text, draft.fixes[0].edits)


def test_what_is_switched_on_later_is_not_off() -> None:
    frame = UserFrame(FILE, 4, "reproducible")
    _, draft = found("pass", Setting(MATMUL, False, (frame,), 1), Setting(MATMUL, True, (frame,), 2))
    assert draft.line == 8


def test_of_two_switches_the_last_is_turned_on_again() -> None:
    first, last = UserFrame(FILE, 4, "reproducible"), UserFrame(FILE, 2, "<module>")
    line = f"{MATMUL} = False"
    _, draft = found(line, Setting(MATMUL, False, (first,), 1), Setting(PRECISION, "highest", (last,), 2))
    assert draft.line == 2
    text, draft = found(line, Setting(PRECISION, "highest", (last,), 1), Setting(MATMUL, False, (first,), 2))
    assert f"{MATMUL} = True" in apply(text, draft.fixes[0].edits)


def test_a_setting_from_before_the_script_has_no_line() -> None:
    _, draft = found("pass", Setting(MATMUL, False))
    assert draft.line == 8
