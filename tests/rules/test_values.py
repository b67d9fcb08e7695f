"""Every fused form computes what the written-out one did: both run on random numbers.

Each snippet of ``snippets.py`` defines ``compute(x)`` (or a module ``Module``); the rule's first fix is
applied to it, and values and gradients before and after are compared.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from tests.annotated import FILE, read_example, texts
from tests.rules.expressions import OTHERS
from tests.rules.snippets import REFUSED, SNIPPETS, Snippet
from warpline.model.profile import LineCost
from warpline.rulekit import Context, Draft
from warpline.rules import rule_named
from warpline.text.edits import apply


def drafts_of(rule: str, code: str) -> tuple[str, list[Draft]]:
    """What ``rule`` finds when every line of ``code`` is costly."""
    example = read_example(code)
    costly = read_example("".join("x  #> cost cpu_ms=1; op aten::cat count=9; op aten::select count=9\n"
                                  for _ in code.splitlines())).profile.lines  # fmt: skip
    lines: list[LineCost] = [
        replace(cost, ops=tuple(replace(op, device_ms=0.1) for op in cost.ops)) for cost in costly
    ]
    if rule.startswith("hand-written"):
        lines = [replace(cost, ops=()) for cost in lines]
    profile = replace(example.profile, lines=tuple(lines), steps=replace(example.profile.steps, step_ms=10.0))
    found = rule_named(rule)
    assert found is not None
    return example.text, list(found.find(Context(profile, texts(example))))


def outcome(code: str, snippet: Snippet) -> list[torch.Tensor]:
    """The results for random inputs, and the gradients of their sum."""
    namespace: dict[str, Any] = {"__name__": "snippet"}
    exec(compile(code, FILE, "exec"), namespace)
    torch.manual_seed(0)
    inputs = [make() for make in snippet.inputs]
    if "Module" in namespace:
        module = namespace["Module"]()
        for parameter in module.parameters():
            torch.nn.init.uniform_(parameter, 0.5, 1.5)
        leaves = [*module.parameters(), *(x for x in inputs if x.requires_grad)]
        result = module.eval()(*inputs)
    else:
        leaves = [x for x in inputs if x.requires_grad]
        result = namespace["compute"](*inputs)
    weights = torch.linspace(0.5, 1.5, result.numel()).view(result.shape)
    gradients = torch.autograd.grad((result * weights).sum(), leaves) if result.requires_grad else ()
    return [result, *gradients]


@pytest.mark.parametrize("snippet", [pytest.param(item, id=f"{item.rule}-{item.name}") for item in SNIPPETS])
def test_fixed_code_gives_the_same_values(snippet: Snippet) -> None:
    text, drafts = drafts_of(snippet.rule, snippet.code)
    fixes = [fix for draft in drafts for fix in draft.fixes[:1]]
    assert len(drafts) == 1, [draft.message for draft in drafts]
    assert fixes, drafts[0].message
    fixed = apply(text, fixes[0].edits)
    assert snippet.after in fixed, fixed
    before, after = outcome(text, snippet), outcome(fixed, snippet)
    assert len(before) == len(after)
    for old, new in zip(before, after, strict=True):
        assert old.shape == new.shape and old.dtype == new.dtype
        torch.testing.assert_close(new, old, rtol=snippet.tolerance, atol=snippet.tolerance)


@pytest.mark.parametrize("snippet", [pytest.param(item, id=f"{item.rule}-{item.name}") for item in REFUSED])
def test_what_would_change_values_is_refused_with_the_reason(snippet: Snippet) -> None:
    _, drafts = drafts_of(snippet.rule, snippet.code)
    assert [draft.fixes for draft in drafts] == [()]
    assert snippet.after in drafts[0].message


@pytest.mark.parametrize(("rule", "formula"), OTHERS)
def test_what_differs_beyond_the_samples_is_another_formula(rule: str, formula: str) -> None:
    imports = "import math\nimport numpy as np\nimport torch\nimport torch.nn.functional as F\n\n"
    _, drafts = drafts_of(rule, f"{imports}def compute(x, y):\n    return {formula}\n")
    assert [draft.message for draft in drafts] == []


@pytest.mark.parametrize(
    "gain", ["dim ** 0.5", "1.5", "nn.Parameter(torch.ones(1))", "nn.Parameter(torch.tensor(2.0))"]
)
def test_a_norm_keeps_a_gain_that_is_no_vector(gain: str) -> None:
    code = """\
from torch import nn, rsqrt
import torch

class Norm(nn.Module):
    def __init__(self, dim):
        self.scale = {gain}

    def forward(self, x):
        return x * rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * self.scale
"""
    _, (draft,) = drafts_of("hand-written-norm", code.format(gain=gain))
    assert not draft.fixes and "are not vectors" in draft.message


SMOOTHED = """\
import torch
import torch.nn as nn
import torch.nn.functional as F

class Module(nn.Module):
    def __init__(self, smoothing=0.1):
        super().__init__()
        self.smoothing = smoothing

    def forward(self, scores, target):
        classes = scores.size(-1)
        shares = F.softmax(scores.float(), dim=-1)  #> cost cpu_ms=5; op aten::_softmax shapes=[SHAPE]
        truth = F.one_hot(target, classes).float()  #> cost cpu_ms=2
        truth = truth * (1.0 - self.smoothing) + self.smoothing / classes  #> cost cpu_ms=2
        return -(truth * torch.log(shares + 1e-9)).sum(dim=-1).mean()  #> cost cpu_ms=5
"""


@pytest.mark.parametrize("shape", [(12, 7), (3, 4, 7)])
def test_a_cross_entropy_over_the_last_of_more_dimensions_is_flattened(shape: tuple[int, ...]) -> None:
    example = read_example(SMOOTHED.replace("SHAPE", str(list(shape)).replace(" ", "")))
    rule = rule_named("hand-written-loss")
    assert rule is not None
    (draft,) = rule.find(Context(example.profile, texts(example)))
    fixed = apply(example.text, draft.fixes[0].edits)
    flat = (".float().flatten(0, -2)", ".flatten()") if len(shape) > 2 else (".float()", "")
    assert f"scores{flat[0]}, target{flat[1]}, label_smoothing=self.smoothing" in fixed
    assert "truth" not in fixed
    snippet = Snippet(
        "hand-written-loss",
        "smoothed",
        "",
        (lambda: torch.randn(shape, requires_grad=True), lambda: torch.randint(7, shape[:-1])),
        "",
    )
    for old, new in zip(outcome(example.text, snippet), outcome(fixed, snippet), strict=True):
        torch.testing.assert_close(new, old, rtol=1e-5, atol=1e-5)


OPAQUE = """\
import torch

def compute(x, y, net):
{body}
"""


@pytest.mark.parametrize(
    ("rule", "body"),
    [
        (
            "hand-written-activation",
            "    with torch.no_grad():\n        g = torch.sigmoid(x)\n    return x * g",
        ),
        (
            "hand-written-loss",
            "    p = torch.sigmoid(net(x))\n"
            "    return -(y * torch.log(p) + (1 - y) * torch.log(1 - p)).mean()",
        ),
    ],
)
def test_no_edit_runs_a_model_twice_or_brings_gradients_back(rule: str, body: str) -> None:
    _, drafts = drafts_of(rule, OPAQUE.format(body=body))
    assert not any(draft.fixes for draft in drafts)


@pytest.mark.parametrize(
    "constants",
    [
        "SLOPE = 0.2\n\ndef turn(to):\n    global SLOPE\n    SLOPE = to\n",
        "SLOPE = 0.2\nSLOPE *= 2\n",
        "for SLOPE in (0.1, 0.2):\n    pass\n",
        "SLOPE = measured()\n",
        "SLOPE = SLOPE\n",
        "from constants import SLOPE\n",
    ],
)
def test_a_name_that_may_stand_for_another_number_is_no_constant(constants: str) -> None:
    code = f"import torch\n\n{constants}\ndef leaky(x):\n    return torch.maximum(x, SLOPE * x)\n"
    assert drafts_of("hand-written-activation", code)[1] == []
