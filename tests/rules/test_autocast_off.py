"""fp32-matmul writes no autocast around one that the run saw switched off."""

from __future__ import annotations

import pytest

from tests.annotated import read_example, texts
from warpline.rulekit import Context
from warpline.rules import rule_named

SCRIPT = """\
#> device kind=cuda capability=(9,0) bf16=true; flags allow_tf32=false autocast=false
import torch

mixed = read("mixed")
{made}

for batch in batches:
    optimizer.zero_grad()
    with {entered}:
        made = model(batch)
        #^ cost device_ms={inside}; op aten::addmm count=73 device_ms={inside} dtypes=float,float,float
    made = head(made)
    #^ cost device_ms={outside}; op aten::addmm count=9 device_ms={outside} dtypes=float,float,float
    loss = made.float().mean()  #> cost device_ms=1
    loss.backward()
"""
OFF = 'torch.autocast("cuda", dtype=torch.bfloat16, enabled=mixed)'
SITE = "  #> site autocast device=cuda enabled={}"


def fixes(made: str, entered: str, inside: int = 50, outside: int = 1) -> list[str]:
    script = SCRIPT.format(made=made, entered=entered, inside=inside, outside=outside)
    example = read_example(script)
    rule = rule_named("fp32-matmul")
    assert rule is not None
    (draft,) = rule.find(Context(example.profile, texts(example)))
    return [fix.title.partition(" ")[0] for fix in draft.fixes]


FACTORY = f"def precise():\n    return {OFF}{SITE.format('false')}"
HELD = f"class Settings:\n    context = {OFF}{SITE.format('false')}"


@pytest.mark.parametrize(
    ("made", "entered"),
    [
        (f"numbers = {OFF}{SITE.format('false')}", "numbers"),
        (f"numbers = {OFF}{SITE.format('false')}", "torch.no_grad(), numbers"),
        (f"first = {OFF}{SITE.format('false')}\nnumbers = first", "numbers"),
        (FACTORY, "precise()"),
        (HELD, "Settings.context"),
    ],
)
def test_an_autocast_inside_that_is_off_stays_off(made: str, entered: str) -> None:
    assert fixes(made, entered) == ["Allow"]  # TF32


@pytest.mark.parametrize(
    ("made", "entered", "inside", "outside"),
    [
        (f"numbers = {OFF}{SITE.format('true')}", "numbers", 50, 1),
        (f"numbers = {OFF}{SITE.format('false')}", "record()", 50, 1),
        (f"numbers = {OFF}{SITE.format('false')}", "numbers", 1, 50),
        (f"numbers = {OFF}{SITE.format('false').replace('cuda', 'cpu')}", "numbers", 50, 1),
    ],
)
def test_other_contexts_are_wrapped(made: str, entered: str, inside: int, outside: int) -> None:
    assert fixes(made, entered, inside, outside) == ["Run", "Allow"]
