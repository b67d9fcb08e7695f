"""constant-rebuilt in a function that several lines call: it stands at its ``def``, where a cache goes."""

from __future__ import annotations

import pytest

from tests.annotated import read_example
from tests.rules.test_pages import found_in
from warpline.rules.constant_rebuilt import ConstantRebuilt
from warpline.text.edits import apply

PARTS = {
    "before": "REACH = 0.5",
    "head": "def kernel(size, reach):",
    "first": 'place = torch.arange(size, device="cuda") / (size - 1)',
    "last": "return torch.exp(-place / reach)",
    "after": "",
}
CODE = """\
import torch
{before}

{head}
    {first}
    #^ cost step_ms=1 device_ms=1 forward_ms=1 function=kernel
    #^ node aten.arange.default function=kernel args=[8192] shape=[8192]
    {last}
    #^ cost step_ms=8 device_ms=8 forward_ms=8 function=kernel
    #^ node aten.exp.default function=kernel args=[%0] shape=[8192,8192]

for x in batches:
    y = kernel(8192, REACH) @ x
    #^ cost step_ms=9 device_ms=9; node aten.mm.default args=[%1,%9] shape=[8192,64]
    y = y @ kernel(8192, 1.5)
    #^ cost step_ms=9 device_ms=9; node aten.mm.default args=[%2,%1] shape=[8192,8192]
    train(y)  #> cost device_ms=30
{after}
"""


@pytest.mark.parametrize(
    ("parts", "offered"),
    [
        ({}, True),
        (
            {
                "head": "def kernel(size, reach, device):",
                "first": "place = torch.arange(size, device=device) / size",
            },
            True,
        ),
        ({"last": "return torch.exp(-place / REACH) / (1.5 - reach)"}, True),
        ({"last": "return torch.exp(-place / REACH - reach)", "after": "    REACH = REACH / 2"}, False),
        ({"last": "return torch.exp(-place / reach[0])"}, False),
        ({"first": "place = torch.arange(size, device=reach.device) / size"}, False),
        ({"first": "place = torch.zeros(size)"}, False),
        ({"head": "def kernel(size, *reach):"}, False),
        ({"head": "@torch.no_grad()\ndef kernel(size, reach):"}, False),
        ({"last": "return torch.exp(-place / reach), place"}, False),
        ({"last": "return torch.exp(-place / (2 * CONFIG['reach'] - reach))"}, False),
        ({"after": "with torch.inference_mode():\n    test()"}, False),
    ],
    ids=[
        "numbers",
        "a device",
        "a constant of the file",
        "a number that changes",
        "a list",
        "a tensor for its device",
        "perhaps a list of sizes",
        "any number of arguments",
        "decorated",
        "two tensors",
        "a setting",
        "tensors without gradients",
    ],
)
def test_a_cache_is_offered_for_a_function_of_numbers(parts: dict[str, str], offered: bool) -> None:
    example = read_example(CODE.format(**PARTS | parts))
    (draft,) = found_in(ConstantRebuilt(), example)
    assert example.text.splitlines()[draft.line - 1].startswith("def kernel(")
    assert bool(draft.fixes) == offered
    if offered:
        text = apply(example.text, draft.fixes[0].edits)
        assert "from functools import cache\n" in text
        assert "\n@cache\ndef kernel(" in text
