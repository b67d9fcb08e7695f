"""Loops over groups of rows that become one addition, run before and after the edit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import libcst as cst
import pytest

from tests.annotated import FILE, read_example, texts
from tests.rulekit.graph import recording
from tests.rulekit.graph.recording import recorded
from warpline.rulekit import Context
from warpline.rulekit.grouped import added_at_once, groups
from warpline.rulekit.rounds import rounds
from warpline.syntax.edits import Refused
from warpline.text.edits import apply

torch = pytest.importorskip("torch")

COST = "  #> cost step_ms=9 calls=9; op aten::index count=9 cpu_ms=1; op aten::mean count=9 cpu_ms=1\n"
HEAD = "import torch\n\ndef work(x, of, n):\n"
MEANS = "    return torch.stack([x[of == i].mean(0) for i in range(n)])" + COST
SUMS = "    parts = [x[k == of].sum(dim=0) for k in range(n)]" + COST + "    return torch.stack(parts)\n"


def edited(body: str, x: Any, of: Any) -> str:
    example = read_example(HEAD + body)
    path = str(Path(recording.__file__).parent / "pieces.py")
    scope: dict[str, Any] = {}
    exec(compile(example.text, path, "exec"), scope)
    flow = recorded(lambda: scope["work"](x, of, 9)).flow
    flow = replace(flow, sites=tuple(replace(site, file=FILE) for site in flow.sites))
    facts = replace(example.profile.facts, dataflow=flow)
    context = Context(replace(example.profile, facts=facts), texts(example))
    (one,) = rounds(context)
    each = groups(one.source, one.loop)
    assert each is not None
    after = apply(example.text, added_at_once(context, one, each).edits)
    again: dict[str, Any] = {}
    exec(after, again)
    torch.testing.assert_close(again["work"](x, of, 9), scope["work"](x, of, 9), equal_nan=True)
    return after


@pytest.mark.parametrize("body", [MEANS, SUMS])
@pytest.mark.parametrize("shape", [(60,), (60, 4), (60, 4, 3)])
def test_all_rows_are_added_at_once(body: str, shape: tuple[int, ...]) -> None:
    owners = torch.randint(8, (60,))  # the last group has none
    assert "index_add_" in edited(body, torch.randn(shape), owners)


@pytest.mark.parametrize(
    ("body", "most"),
    [
        (MEANS, 10),
        (MEANS.replace("range(n)", "range(int(of.max()) + 1)"), 9),
    ],  # a row of no group; read twice
)
def test_others_are_left_alone(body: str, most: int) -> None:
    owners = torch.arange(60) % most
    with pytest.raises(Refused):
        edited(body, torch.randn(60, 4), owners)


@pytest.mark.parametrize(
    "code", ["x[of == i].amax(0)", "x[of >= i].mean(0)", "x[of == i].mean(1)", "x[of == i, 0].mean(0)"]
)
def test_other_reductions_are_no_groups(code: str) -> None:
    example = read_example(HEAD + MEANS.replace("x[of == i].mean(0)", code))
    source = Context(example.profile, texts(example)).source(FILE)
    (loop,) = source.nodes(cst.ListComp)
    assert groups(source, loop) is None
