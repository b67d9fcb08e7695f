"""Functions with decorators of their own: which of them a compiled function may stand below."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.annotated import read_example, texts
from warpline.rulekit import Context, Draft
from warpline.rules.unfused_elementwise import UnfusedElementwise
from warpline.text.edits import apply

CODE = """\
import functools
import torch
from torch.cuda.amp import custom_fwd


def registered(function):
    return function


class Loss:
    scale = torch.tensor(2.0)

    {decorators}
    def one_way(self, x):  #> found
        y = x * self.scale + torch.cat([-x, x]).sum()
        #^ cost device_ms=3; kernel CatArrayBatchedCopy count=24 device_ms=2
        #^ kernel vectorized_elementwise_kernel count=24 device_ms=1
        return y.exp() * self.scale.cos()
        #^ cost device_ms=4; kernel vectorized_elementwise_kernel count=72 device_ms=4
"""


def found(*decorators: str) -> tuple[str, Draft]:
    example = read_example(CODE.format(decorators="\n    ".join(decorators)))
    (draft,) = UnfusedElementwise().find(Context(example.profile, texts(example)))
    return example.text, draft


@pytest.mark.parametrize(
    ("decorators", "call"),
    [
        (["@staticmethod"], "Loss.one_way(Loss, x)"),
        (["@classmethod"], "Loss.one_way(x)"),
        (["@torch.no_grad()"], "Loss().one_way(x)"),
        (["@torch.no_grad"], "Loss().one_way(x)"),
        (["@staticmethod", "@torch.inference_mode()  # no gradients"], "Loss.one_way(Loss, x)"),
        (['@torch.autocast("cpu", torch.bfloat16)'], "Loss().one_way(x)"),
    ],
)
def test_modes_and_holders_stay_above(
    decorators: list[str], call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, draft = found(*decorators)
    (fix,) = draft.fixes
    after = apply(text, fix.edits)
    assert f"    {decorators[-1]}\n    @torch.compile\n    def one_way(" in after

    calls: list[Any] = []

    def compiled(function: Any) -> Any:
        made = torch._dynamo.optimize("eager")(function)
        return lambda *given: (calls.append(given), made(*given))[1]

    results = []
    with monkeypatch.context() as patched:
        patched.setattr(torch, "compile", compiled)
        for code in (text, after):
            names: dict[str, Any] = {"x": torch.arange(6.0)}
            exec(compile(code, "/example/train.py", "exec"), names)
            results.append(eval(call, names))
    assert len(calls) == 1
    assert torch.equal(*results) and results[0].requires_grad is results[1].requires_grad


@pytest.mark.parametrize(
    "decorator",
    ["@functools.cache", "@registered", "@custom_fwd", "@torch.jit.script"],
)
def test_others_may_need_the_function_itself(decorator: str) -> None:
    _, draft = found(decorator)
    assert draft.fixes == ()
    assert f"`{decorator}` may need the function as it is" in draft.message
