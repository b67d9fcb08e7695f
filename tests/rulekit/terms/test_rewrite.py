"""Edits from a match: nothing that is still needed goes, and nothing is called by a wrong name."""

from __future__ import annotations

import libcst as cst
import pytest

from warpline.rulekit import Edits, Refused, Source
from warpline.rulekit.terms import Rewrite, follow
from warpline.text.edits import apply


def rewritten(code: str, new: str = "fused({x})") -> str:
    """The last return's expression replaced by ``new``, with ``{x}`` the first parameter."""
    source = Source("/x.py", "import torch\n\n" + code)
    function = source.nodes(cst.FunctionDef)[-1]
    flow = follow(source, function)
    step = next(item for item in reversed(flow.steps) if item.target is None)
    rewrite = Rewrite(flow, step)
    parameter = next(iter(flow.steps[0].before.values()))
    edits = Edits(source)
    rewrite.into(edits, new.format(x=rewrite.spell(parameter)))
    return apply(source.text, edits.fix("", "unsafe").edits).removeprefix("import torch\n\n")


@pytest.mark.parametrize(
    ("code", "after"),
    [
        # What only the old expression needed goes, through several steps.
        ("def f(x):\n    a = x + 1\n    b = a * 2\n    return b.exp()\n", "def f(x):\n    return fused(x)\n"),
        # A value that is read elsewhere stays.
        (
            "def f(x):\n    a = x + 1\n    print(a)\n    return a.exp()\n",
            "def f(x):\n    a = x + 1\n    print(a)\n    return fused(x)\n",
        ),
        # A name made anew holds its old value once that is gone.
        ("def f(x):\n    x = x + 1\n    x = x * 2\n    return x.exp()\n", "def f(x):\n    return fused(x)\n"),
        # A call that may do anything stays.
        (
            "def f(x):\n    a = log(x)\n    return a.exp()\n",
            "def f(x):\n    a = log(x)\n    return fused(x)\n",
        ),
        # A branch with nothing left goes as a whole; comments between stay.
        (
            "def f(x, m):\n    a = x + 1\n    if m is not None:\n        a = a + m\n"
            "    # done\n    return a.exp()\n",
            "def f(x, m):\n    # done\n    return fused(x)\n",
        ),
        # An element that is set needs the tensor it is set in.
        (
            "def f(x):\n    a = x + 1\n    a[0] = 0\n    return a.exp()\n",
            "def f(x):\n    a = x + 1\n    a[0] = 0\n    return fused(x)\n",
        ),
        # What a nested function reads stays.
        (
            "def f(x):\n    a = x + 1\n    later(lambda: a)\n    return a.exp()\n",
            "def f(x):\n    a = x + 1\n    later(lambda: a)\n    return fused(x)\n",
        ),
    ],
)
def test_only_what_is_no_longer_needed_goes(code: str, after: str) -> None:
    assert rewritten(code) == after


def test_a_value_without_a_name_is_refused() -> None:
    """``x`` was overwritten by something that stays, so the old ``x`` is gone."""
    with pytest.raises(Refused, match="has no name there"):
        rewritten("def f(x):\n    y = x + 1\n    x = load()\n    return y.exp() + x\n")


def test_long_calls_are_broken() -> None:
    source = Source("/x.py", "def f(x):\n    return x.exp()\n")
    flow = follow(source, source.nodes(cst.FunctionDef)[0])
    text = Rewrite(flow, flow.steps[0]).call("fused", ["x" * 45, "y" * 40])
    assert text == f"fused(\n        {'x' * 45}, {'y' * 40}\n    )"
    text = Rewrite(flow, flow.steps[0]).call("fused", ["x" * 60, "y" * 60])
    assert text == f"fused(\n        {'x' * 60},\n        {'y' * 60},\n    )"
