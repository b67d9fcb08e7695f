"""Loops over pieces of tensors that become calls of ``torch.vmap``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import libcst as cst
import pytest

from tests.annotated import FILE, read_example, texts
from tests.rulekit.graph import recording
from tests.rulekit.graph.recording import recorded
from warpline.diagnosis.diagnose import diagnose
from warpline.rulekit import Context
from warpline.rulekit.rounds import rounds
from warpline.rulekit.vectorised import at_once, is_recurrence
from warpline.syntax.edits import Refused
from warpline.syntax.source import Source
from warpline.text.edits import apply

torch = pytest.importorskip("torch")

HEAD = """\
import torch
seen = []

def level(row):
    power = row.square()
    return torch.stack((power.mean().log(), power.amax()))

def noted(row):
    seen.append(row)
    return row * 2

def work(x, y, w):
"""


def edited(body: str, autocast: bool = False) -> str:
    """The text after the edit of the only loop, which is run before and after it. Raises Refused."""
    code = HEAD + body
    example = read_example(code)
    path = str(Path(recording.__file__).parent / "pieces.py")
    given = torch.randn(9, 4), torch.randn(5, 9), torch.randn(9)
    scope: dict[str, Any] = {}
    exec(compile(example.text, path, "exec"), scope)
    flow = recorded(lambda: scope["work"](*given)).flow
    flow = replace(
        flow,
        sites=tuple(replace(site, file=FILE) for site in flow.sites),
        frames=tuple(replace(frame, file=FILE) for frame in flow.frames),
    )
    called = tuple((FILE, name) for name in ("level", "noted") if f"{name}(" in body)
    inside = read_example(HEAD.replace("\n    ", "  #> cost step_ms=1\n    ")).profile.lines
    costs = tuple(replace(cost, called=called) for cost in example.profile.lines)
    costs += tuple(
        replace(cost, function="noted" if cost.line > 7 else "level")
        for cost in inside
        if called and cost.line > 3
    )
    facts = replace(
        example.profile.facts, dataflow=flow, flags=replace(example.profile.facts.flags, autocast=autocast)
    )
    context = Context(replace(example.profile, facts=facts, lines=costs), texts(example))
    (one,) = rounds(context)
    fix = at_once(context, one)
    after = apply(example.text, fix.edits)
    again: dict[str, Any] = {}
    exec(after, again)
    torch.testing.assert_close(again["work"](*given), scope["work"](*given))
    return after.split("def work(x, y, w):\n")[1]


COST = "  #> cost step_ms=9 calls=9; op aten::select count=9 cpu_ms=1; op aten::mul count=9 cpu_ms=1\n"


FILLED = "    out = torch.zeros({})\n    for i in range(9):\n        {}" + COST + "    return out\n"
TAKEN = COST.replace("select count=9", "unbind count=1 shapes=[[9,4]]")


@pytest.mark.parametrize(
    ("body", "after"),
    [
        ("    return torch.stack([level(row) for row in x])" + COST, "    return torch.vmap(level)(x)\n"),
        (
            "    found = [level(row) for row in x.unbind(0)]" + COST
            + "    return torch.stack(found, dim=1)\n",
            "    found = torch.vmap(level)(x)\n    return found.movedim(0, 1)\n",
        ),
        (
            "    return torch.stack([a * b.sum() for a, b in zip(x, y.unbind(1))])" + COST,
            "    return torch.vmap(lambda a, b: a * b.sum(), in_dims=(0, 1))(x, y)\n",
        ),
        (
            "    return torch.cat([row[None] * w[:4] for row in x])" + COST,
            "    return torch.vmap(lambda row: row[None] * w[:4])(x).flatten(0, 1)\n",
        ),
        ("    return torch.stack(list(map(level, x)))" + COST, "    return torch.vmap(level)(x)\n"),
        (
            "    out = torch.empty(2, 9)\n    for i in range(9):\n        out[:, i] = level(x[i])" + COST
            + "    return out\n",
            "    out = torch.empty(2, 9)\n"
            "    out[:] = torch.vmap(lambda x_i: level(x_i))(x).movedim(0, 1)\n    return out\n",
        ),
        (
            "    out = torch.empty(9, 4, dtype=torch.float64)\n    for i, row in enumerate(x):\n"
            "        part = row * w[i]" + COST + "        out[i] = part - part.mean()\n    return out\n",
            "    out = torch.empty(9, 4, dtype=torch.float64)\n    def each_row(row, w_i):\n"
            "        part = row * w_i\n        return part - part.mean()\n"
            "    out[:] = torch.vmap(each_row)(x, w)\n    return out\n",
        ),
        (
            "    rows = []\n    for i, row in enumerate(x):\n        part = row * w[i]" + COST
            + "        rows.append(part @ part + y[:, i].sum())\n    return torch.stack(rows) + 1\n",
            "    def each_row(row, w_i, y_i):\n        part = row * w_i\n"
            "        return part @ part + y_i.sum()\n"
            "    rows = torch.vmap(each_row, in_dims=(0, 0, 1))(x, w, y)\n    return rows + 1\n",
        ),
        (
            "    rows = []\n    for i in range(len(x)):\n        rows.append(x[i] * 2)" + COST
            + "    return torch.stack(rows)\n",
            "    rows = torch.vmap(lambda x_i: x_i * 2)(x)\n    return rows\n",
        ),
        # Sums of all rounds.
        (
            "    total = 0\n    for a, b in zip(x, w):\n        total += (a * b).exp()" + COST
            + "    return total / len(x)\n",
            "    total = 0\n    total += torch.vmap(lambda a, b: (a * b).exp())(x, w).sum(0)\n"
            "    return total / len(x)\n",
        ),
        (
            "    total = x[0]\n    for i in range(9):\n        part = x[i] * w[i]" + COST
            + "        total = total + part.exp()\n    return total\n",
            "    total = x[0]\n    def each_x_i(x_i, w_i):\n        part = x_i * w_i\n"
            "        return part.exp()\n"
            "    total = total + torch.vmap(each_x_i)(x, w).sum(0)\n    return total\n",
        ),
        (
            "    rows = []\n    for row in x:\n        rows.append(row * 2)" + TAKEN
            + "    return sum(rows) / len(rows)\n",
            "    rows = torch.vmap(lambda row: row * 2)(x)\n    return rows.sum(0) / len(rows)\n",
        ),
        (
            "    return sum(row.square() * 2 for row in x)" + COST,
            "    return torch.vmap(lambda row: row.square() * 2)(x).sum(0)\n",
        ),
    ],
)  # fmt: skip
def test_the_work_of_a_round_is_called_for_all_pieces(body: str, after: str) -> None:
    assert edited(body) == after


SUM = "    total = w[:4].clone()\n    for row in x:\n        {}\n    return total\n"
NUMBERS = "    kept = []\n    for i in range(9):\n        kept.append((w[i] * 2).item())"
ROWS = f"    rows = []\n    last = 0.0\n    for row in x:{TAKEN}{{}}    return torch.stack(rows){{}}\n"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        # Not the whole of a dimension.
        ("    return torch.stack([x[i] * 2 for i in range(8)])" + COST, "whole of a dimension"),
        ("    return torch.stack([a * b for a, b in zip(x, w[:8])])" + COST, "whole of a dimension"),
        ("    return torch.stack([row * 2 for row in list(x)])" + COST, "whole of a dimension"),
        # The number is more than an index.
        ("    return torch.stack([x[i] * i for i in range(9)])" + COST, "more than its slice"),
        # More than computing.
        ("    return torch.stack([noted(row) for row in x])" + COST, "does more than compute"),
        ("    return torch.stack([row * row.sum().item() for row in x])" + COST, "does more than compute"),
        (NUMBERS + COST + "    return torch.tensor(kept)\n", "single numbers"),
        (NUMBERS + COST.replace("=9;", "=9 backward_ms=3;", 1) + "    return kept\n", "does more than"),
        ("    return torch.stack([row + torch.rand_like(row) for row in x])" + COST, "random numbers"),
        (ROWS.format("        row *= 2" + COST + "        rows.append(row)\n", ""), "does more than compute"),
        # The round before.
        (
            ROWS.format("        last = row + last" + COST + "        rows.append(row * 2)\n", ""),
            "the previous one",
        ),
        # Results that something else reads.
        (
            ROWS.format("        kept = row * 2" + COST + "        rows.append(kept)\n", ", kept"),
            "outside the loop",
        ),
        (ROWS.format("        rows.append(row * 2)" + COST, ", rows[0]"), "used elsewhere"),
        (ROWS.format("        rows.append(row * len(rows))" + COST, ""), "used elsewhere"),
        # A tensor of which a part is filled, or with what is spread, or which the rounds read.
        (FILLED.format("10, 4", "out[i] = x[i] * 2"), "not fill all"),
        (FILLED.format("9, 4", "out[i] = x[i].sum()"), "nor do they fill"),
        (FILLED.format("9, 4", "out[i] = x[i] + out[i - 1]"), "."),
        (FILLED.format("9, 4", "out[i, :2] = x[i, :2] * 2"), "."),
        # Neither a list nor a sum of tensors.
        (SUM.format("total -= row.exp()" + TAKEN), "nor added up"),
        (SUM.format("total = row + total" + TAKEN), "nor added up"),
        (SUM.format("part = row * 2" + TAKEN + "        total += 1"), "nor added up"),
        # A sum that the rounds read, or that something else is added to.
        (SUM.format("row = row + total.mean()" + TAKEN + "        total += row"), "the previous one"),
        (SUM.format("total += row" + TAKEN + "        total += row * 2"), "does more than compute"),
        (
            "    rows = [row * 2 for row in x]" + COST + "    return torch.stack(rows, 0), rows[0]\n",
            "used elsewhere",
        ),
    ],
)  # fmt: skip
def test_another_loop_stays(body: str, reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        edited(body)


def test_where_autocast_casts_the_loop_stays() -> None:
    with pytest.raises(Refused, match="autocast"):
        edited("    return torch.stack([row.double() * 2 for row in x])" + COST, autocast=True)


def test_without_a_trial_there_is_no_edit() -> None:
    example = read_example(
        "import torch\n\ndef scale(x):\n"
        "    return torch.stack([row * 2 for row in x])\n"
        "    #^ tensor %9 shape=[64,100]; node aten.unbind.int args=[%9,0] of=x\n"
        "    #^ cost step_ms=12 cpu_ms=12 launches=192; op aten::unbind count=1 shapes=[[64,100]] cpu_ms=1\n"
        "    #^ op aten::mul count=64 cpu_ms=9\n"
    )
    told = diagnose(example.profile, texts(example)).findings
    (loop,) = [one for one in told if one.rule == "python-loop-over-tensor"]
    assert not loop.fixes and "no trial of it" in loop.message


def test_three_pieces_in_each_layer_are_no_loop() -> None:
    example = read_example(
        "def heads(x):\n    q, k, v = (t.mT for t in x.chunk(3, -1))\n"
        "    #^ cost step_ms=9 calls=8; op aten::chunk count=8 cpu_ms=1\n"
        "    #^ op aten::transpose count=24 cpu_ms=5\n"
    )
    assert list(rounds(Context(example.profile, texts(example)))) == []


@pytest.mark.parametrize(
    ("body", "recurrence"),
    [
        ("level = (level + x[t]) * (level - x[t])", True),
        ("level = x[t] / level + 1", True),
        ("level = a[t] * level[:-1] + b[t] * level[1:]", True),
        ("level = 0.9 * level + x[t]", False),  # a filter
        ("last = x[t] + 0.99 * alive[t] * last\n    found[t] = last", False),  # a discounted sum
        ("level = level + 0.5 * x[t]", False),  # a sum
        ("level = x[t] * level / 2", False),  # a product
        ("level += x[t] * 2 - 1", False),
        ("start = start + wide\n    rows.append(2 * x[start] + 1)", False),
        ("level = x[t] * 2\n    rows.append(3 * level + 1)", False),  # its own
        ("rows.append(0.9 * level + x[t])", False),
    ],
)
def test_rounds_that_need_the_one_before(body: str, recurrence: bool) -> None:
    source = Source("f.py", f"for t in range(64):\n    {body}\n")
    (loop,) = source.nodes(cst.For)
    assert is_recurrence(source, loop) is recurrence
