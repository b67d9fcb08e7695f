"""Loops over windows of tensors and arrays that become one look-up."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import libcst as cst
import numpy as np
import pytest

from tests.annotated import FILE, read_example, texts
from tests.rulekit.graph import recording
from tests.rulekit.graph.recording import recorded
from warpline.rulekit import Context
from warpline.rulekit.rounds import rounds
from warpline.rulekit.windows import windows
from warpline.rulekit.windows_at_once import how_tried, windows_at_once
from warpline.syntax.edits import Refused
from warpline.syntax.source import Source
from warpline.text.edits import apply

torch = pytest.importorskip("torch")

HEAD = """\
import random
import numpy as np
import torch

tokens = torch.arange(500)
series = torch.randn(500, 3)
steps = np.arange(500).astype(np.uint16)
table = np.random.rand(500, 3).astype(np.float32)
size = 6
rng = np.random.default_rng(0)
words = list(range(500))

class Stored:
    def __getitem__(self, part):
        return steps[part].astype(int)

stored = Stored()

def work():
    torch.manual_seed(0), random.seed(0), np.random.seed(0)
"""
TORCH = "    ix = torch.randint(len(tokens) - size - 9, (16,))\n"
NUMPY = "    ix = np.random.randint(0, len(steps) - size - 9, size=16)\n"
LIST = "    ix = [random.randint(0, 400) for _ in range(16)]\n"
COST = "  #> cost step_ms=9 calls=17; op aten::stack count=1 cpu_ms=1\n"
VIEW = "np.lib.stride_tricks.sliding_window_view"

TRIED: dict[str, tuple[str, ...] | None] = {}


def edited(body: str) -> str:
    """The text after the edit of the only loop, which is run before and after it: values, types and layouts
    are the same. Raises Refused."""
    example = read_example(HEAD + body)
    path = str(Path(recording.__file__).parent / "pieces.py")
    scope: dict[str, Any] = {}
    exec(compile(example.text, path, "exec"), scope)
    flow = recorded(scope["work"]).flow
    flow = replace(
        flow,
        sites=tuple(replace(site, file=FILE) for site in flow.sites),
        frames=tuple(replace(frame, file=FILE) for frame in flow.frames),
    )
    facts = replace(example.profile.facts, dataflow=flow)
    context = Context(replace(example.profile, facts=facts), texts(example))
    (one,) = rounds(context)
    assert one.count >= 16
    cut = windows(one.source, one.loop)
    fix = windows_at_once(context, one, cut)
    TRIED[body] = how_tried(context, one, cut)
    after = apply(example.text, fix.edits)
    again: dict[str, Any] = {**scope}
    # The data are the same: only the function is made anew.
    exec(after[after.index("def work") :], again)
    scope["rng"], again["rng"] = (np.random.default_rng(0) for _ in range(2))
    old, new = scope["work"](), again["work"]()
    for before, now in zip(*((one if isinstance(one, tuple) else (one,)) for one in (old, new)), strict=True):
        assert torch.equal(before, now) and before.dtype == now.dtype and before.stride() == now.stride()
        assert before.data_ptr() != now.data_ptr()
    return after.split("np.random.seed(0)\n")[1]


@pytest.mark.parametrize(
    ("head", "loop", "after"),
    [
        (
            TORCH, "torch.stack([tokens[i:i+size] for i in ix])",
            "tokens.unfold(0, size, 1).index_select(0, ix)",
        ),
        (
            TORCH, "torch.stack([tokens[i+1:i+1+size] for i in ix])",
            "tokens.unfold(0, size, 1).index_select(0, ix + 1)",
        ),
        (
            LIST, "torch.stack([tokens[i - 0 + size : i + size + 8 + size].float() for i in ix], dim=1)",
            "tokens.unfold(0, size + 8, 1).index_select(0, torch.as_tensor(ix) + size)"
            ".float().movedim(0, 1).contiguous()",
        ),
        (
            NUMPY, "torch.stack(list(tokens[i : i + 6] for i in ix))",
            "tokens.unfold(0, 6, 1).index_select(0, torch.as_tensor(ix))",
        ),
        (
            TORCH, "torch.stack([series[i:i+size] for i in ix])",
            "series.unfold(0, size, 1).movedim(-1, 1).index_select(0, ix)",
        ),
        (
            TORCH, "torch.stack([series.T[:, i:i+size] for i in ix.tolist()])",
            "series.T.unfold(1, size, 1).movedim((1, -1), (0, 2)).index_select(0, ix)",
        ),
        (
            TORCH, "torch.stack([torch.from_numpy(table[i:i+size, 1]) for i in ix])",
            f"torch.from_numpy({VIEW}(table[:, 1], size)[ix.numpy()])",
        ),
        (
            TORCH, "torch.cat([series[i:i+size, :-1] for i in ix])",
            "series[:, :-1].unfold(0, size, 1).movedim(-1, 1).index_select(0, ix).flatten(0, 1)",
        ),
        (
            TORCH, "torch.cat([series[i:i+size, 0] for i in ix])",
            "series[:, 0].unfold(0, size, 1).index_select(0, ix).flatten(0, 1)",
        ),
        (
            TORCH, "torch.stack([torch.from_numpy((steps[i:i+size]).astype(np.int64)) for i in ix])",
            f"torch.from_numpy(({VIEW}(steps, size)[ix.numpy()]).astype(np.int64))",
        ),
        (
            TORCH, "torch.stack([torch.from_numpy((steps[i+1:i+1+size]).astype(np.int64)) for i in ix])",
            f"torch.from_numpy(({VIEW}(steps, size)[(ix + 1).numpy()]).astype(np.int64))",
        ),
        (
            NUMPY, "torch.stack([torch.from_numpy(steps[i+1:i+1+size].astype(np.int64)) for i in ix])",
            f"torch.from_numpy({VIEW}(steps, size)[ix + 1].astype(np.int64))",
        ),
        (
            LIST, "torch.stack([torch.tensor(table[i:i+size], dtype=torch.float64) for i in ix])",
            f"torch.tensor(np.moveaxis({VIEW}(table, size, axis=0), (0, -1), (0, 1))[np.asarray(ix)], "
            "dtype=torch.float64).contiguous()",
        ),
        (
            "    cut = table.transpose()\n    ix = rng.integers(0, 400, 16)\n",
            "torch.stack([torch.from_numpy(cut[:, i:i+size]) for i in ix])",
            f"torch.from_numpy(np.moveaxis({VIEW}(cut, size, axis=1), (1, -1), (0, 2))[ix])"
            ".contiguous()",
        ),
        (
            "", "torch.stack([torch.from_numpy(steps[i:i+9].astype(int)) for i in range(0, 480, 30)])",
            f"torch.from_numpy({VIEW}(steps, 9)[np.asarray(range(0, 480, 30))].astype(int))",
        ),
    ],
)  # fmt: skip
def test_windows_are_one_look_up(head: str, loop: str, after: str) -> None:
    assert edited(f"{head}    return {loop}{COST}") == f"{head}    return {after}\n"


def test_a_look_up_on_a_device_does_not_wait_for_it() -> None:
    cost = COST.replace("calls=17", "calls=17 launches=17 device_ms=1")
    after = edited(f"{TORCH}    return torch.stack([tokens[i+1:i+1+size] for i in ix]){cost}")
    assert "index_select(0, (ix + 1).to(tokens.device, non_blocking=True))" in after


@pytest.mark.parametrize(
    ("head", "loop", "reason"),
    [
        # A file that is read when it is indexed: NumPy would read all of it.
        (TORCH, "torch.stack([torch.from_numpy(stored[i:i+size]) for i in ix])", "`stored` is an array"),
        (TORCH, "torch.stack([torch.tensor(words[i:i+size]) for i in ix])", "`words` is an array"),
        # Another name of it, which a loop gives.
        (
            TORCH + "    for part in (steps,):\n        pass\n",
            "torch.stack([torch.from_numpy(part[i:i+size].astype(int)) for i in ix])", "`part` is an array",
        ),
        (
            TORCH + "    for part in (steps,):\n        def cut():\n            return "
            "torch.stack([torch.from_numpy(part[i:i+size].astype(int)) for i in ix])" + COST
            + "    cut()\n", "0", "`part` is an array",
        ),
        ("    ix = iter(range(16))\n", "torch.stack([tokens[i:i+size] for i in ix])", "what `ix` is"),
        (
            TORCH + "    xs = []\n    for i in ix:\n        xs.append(tokens[i:i+size])" + COST,
            "torch.stack(xs), i", "unfold",
        ),
        (TORCH, "sum([tokens[i:i+size] for i in ix])", "not stacked"),
    ],
)  # fmt: skip
def test_what_the_record_and_the_text_do_not_say_stays(head: str, loop: str, reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        edited(f"{head}    return {loop}{COST}")


@pytest.mark.parametrize(
    "loop",
    [
        "[tokens[i:i+i] for i in ix]",
        "[tokens[i:2*i] for i in ix]",
        "[tokens[i*size:i+size] for i in ix]",
        "[tokens[i:i+size:2] for i in ix]",
        "[tokens[i:i+draw()] for i in ix]",
        "[tokens[:i] for i in ix]",
        "[tokens[i:i-size] for i in ix]",
        "[tokens[i:i+size, i] for i in ix]",
        "[tokens[rows, i:i+size] for i in ix]",
        "[tokens[i:i+size, rows] for i in ix]",
        "[tokens[i][i:i+size] for i in ix]",
        "[tokens[i:i+size] + 1 for i in ix]",
        "[tokens[i:i+size].sum() for i in ix]",
        "[torch.tensor(tokens[i:i+size], dtype=kinds[i]) for i in ix]",
        "[model(tokens[i:i+size]) for i in ix]",
        "[tokens[i:i+size] for i in ix if i]",
        "[tokens[i:i+size] for i in ix for _ in ix]",
        "[tokens[i:i+size] for i, j in ix]",
        "{i: tokens[i:i+size] for i in ix}",
    ],
)
def test_these_are_no_windows(loop: str) -> None:
    source = Source("a.py", f"x = {loop}\n")
    (assign,) = source.nodes(cst.Assign)
    assert not windows(source, assign.value)


def test_windows_that_a_loop_collects() -> None:
    body = (
        TORCH + "    xs, n = None, 7\n    x = []\n    y = []\n    for i in ix:\n"
        "        x.append(tokens[i:i+n])" + COST
        + "        y.append(torch.from_numpy(steps[i+1:i+n+1].astype(np.int64)))"
        + COST + "    return torch.stack(x), torch.stack(y)\n"
    )  # fmt: skip
    assert edited(body).splitlines()[2:] == [
        "    x = tokens.unfold(0, n, 1).index_select(0, ix)",
        f"    y = torch.from_numpy({VIEW}(steps, n)[(ix + 1).numpy()].astype(np.int64))",
        "    return x, y",
    ]


@pytest.mark.parametrize(
    ("head", "loop", "words"),
    [
        (TORCH, "[tokens[i:i+size] for i in ix]", ("torch", "0", "int64", "tensor", "host", "16,6")),
        (LIST, "[series[i:i+size] for i in ix]", ("torch", "0", "float32", "host", "16,6,3")),
        (
            TORCH, "[series.T[..., i:i+size] for i in ix]",
            ("torch", "1", "float32", "tensor", "host", "16,3,6"),
        ),
        (
            NUMPY, "[torch.from_numpy(steps[i:i+size].astype(np.int64)) for i in ix]",
            ("numpy", "0", "int64", "cast", "from=uint16", "host", "16,6"),
        ),
    ],
)  # fmt: skip
def test_a_batch_is_tried_as_it_is_recorded(head: str, loop: str, words: tuple[str, ...]) -> None:
    body = f"{head}    return torch.stack({loop}){COST}"
    edited(body)
    assert TRIED[body] == words
