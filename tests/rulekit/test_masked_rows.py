"""The largest or smallest of the numbers that a mask chooses in each row, taken of all rows at once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.annotated import FILE, read_example, texts
from tests.rulekit.graph import recording
from tests.rulekit.graph.recording import recorded
from warpline.rulekit import Context
from warpline.rulekit.masked_rows import filled_at_once, masked_rows
from warpline.rulekit.rounds import rounds
from warpline.syntax.edits import Refused
from warpline.text.edits import apply

torch = pytest.importorskip("torch")

HEAD = """\
import torch

def work(far, near, n):
"""
COST = "  #> cost step_ms=9 calls=9; op aten::select count=18 cpu_ms=1; op aten::max count=9 cpu_ms=1\n"
LISTS = (
    "    a, b = [], []\n    for i in range(n):\n        a.append(far[i][near[i]].max())" + COST
    + "        b.append(far[i][near[i] == 0].min())" + COST
    + "    a = torch.stack(a)\n    b = torch.stack(b)\n    return a - b\n"
)  # fmt: skip


def edited(body: str, n: int = 9) -> str:
    """The text after the edit, whose results and gradients are the same. Raises Refused."""
    example = read_example(HEAD + body)
    path = str(Path(recording.__file__).parent / "rows.py")
    far = torch.randint(4, (9, 6)).float().requires_grad_()  # some numbers are equal
    near = torch.arange(54).reshape(9, 6) % 2 == 0
    scope: dict[str, Any] = {}
    exec(compile(example.text, path, "exec"), scope)
    flow = recorded(lambda: scope["work"](far, near, n)).flow
    flow = replace(
        flow,
        sites=tuple(replace(site, file=FILE) for site in flow.sites),
        frames=tuple(replace(frame, file=FILE) for frame in flow.frames),
    )
    facts = replace(example.profile.facts, dataflow=flow)
    context = Context(replace(example.profile, facts=facts), texts(example))
    (one,) = rounds(context)
    each = masked_rows(one.source, one.loop)
    assert each
    after = apply(example.text, filled_at_once(context, one, each).edits)
    again: dict[str, Any] = {}
    exec(after, again)
    results = [each["work"](far, near, n) for each in (scope, again)]
    torch.testing.assert_close(*results)
    gradients = [torch.autograd.grad(result.square().sum(), far)[0] for result in results]
    torch.testing.assert_close(*gradients)
    return after.split("n):\n", 1)[1]


@pytest.mark.parametrize(
    ("body", "after"),
    [
        (
            LISTS,
            '    a = far.masked_fill(~near, float("-inf")).amax(1)\n'
            '    b = far.masked_fill(near, float("inf")).amin(1)\n    return a - b\n',
        ),
        (
            "    found = []\n    for i in range(n):\n"
            "        found.append(far[i][~near[i]].max().unsqueeze(0))" + COST
            + "    most = torch.cat(found)\n    return most * 2\n",
            '    found = far.masked_fill(near, float("-inf")).amax(1)\n'
            "    most = found\n    return most * 2\n",
        ),
        (
            "    return torch.stack([far[i][near[i]].min() for i in range(n)])" + COST,
            '    return far.masked_fill(~near, float("inf")).amin(1)\n',
        ),
    ],
)  # fmt: skip
def test_all_rows_at_once_have_the_same_results_and_gradients(body: str, after: str) -> None:
    assert edited(body) == after


@pytest.mark.parametrize(
    ("body", "n"),
    [
        (LISTS, 8),  # not all rows
        (LISTS.replace("return a - b", "return a - c * len(b)").replace("    b = torch", "    c = torch"), 9),
        (LISTS.replace("torch.stack(a)", "torch.stack(a, 0)"), 9),
        (LISTS.replace("    a, b = [], []", "    a, b, c = [], [], []"), 9),
        (LISTS.replace("    a = torch", "    print(len(a))\n    a = torch"), 9),
    ],
)
def test_others_are_left_to_the_user(body: str, n: int) -> None:
    with pytest.raises(Refused):
        edited(body, n)


@pytest.mark.parametrize(
    "line",
    [
        "a.append(far[i][near[i]].max() + 1)",
        "a.append(far[i][near[i]].mean())",
        "a.append(far[i][near[i]].max(0))",
        "a.append(far[i][near[0]].max())",
        "a.append(far[i][near[i] == 1].max())",
        "a.append(far[i][near[i]].max().unsqueeze(1))",
    ],
)
def test_other_loops_are_none_of_these(line: str) -> None:
    example = read_example(f"for i in range(8):\n    {line}\n")
    context = Context(example.profile, texts(example))
    source = context.source(FILE)
    (loop,) = source.loops_at(2)
    assert masked_rows(source, loop) == []
