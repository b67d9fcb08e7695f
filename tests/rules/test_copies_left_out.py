"""Copies that nothing needs, left out of small models that are recorded, and run before and after."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tests import samples
from warpline.model.profile import LineCost
from warpline.rulekit import Context
from warpline.rulekit.context import Draft
from warpline.rules.layout_churn import LayoutChurn
from warpline.text.edits import apply
from warpline.wire.run import Site

SCRIPT = """\
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
images, held = torch.randn(2, 8, 6, 6), torch.zeros(2, 8, 6, 6)
first, second, head = nn.Conv2d(8, 8, 3, padding=1), nn.Conv2d(8, 8, 1), nn.Linear(288, 2)
kept = torch.arange(4).view(2, 2)

def normed(x):
    x = F.layer_norm(x.permute(0, 2, 3, 1), (8,))
    return x.permute(0, 3, 1, 2).contiguous()

def unused(x):
    {unused}

def step():
    x = normed(first(images))
    {rest}
"""


def judged(
    tmp_path: Path, rest: str, unused: str = "return x.reshape(-1)", **facts: Any
) -> tuple[str, Draft]:
    from warpline.capture.runner.dataflow.mode import Recording
    from warpline.capture.runner.lines.names import QualifiedNames
    from warpline.capture.runner.lines.userfiles import UserFiles

    path = tmp_path / "model.py"
    text = SCRIPT.format(rest="\n    ".join(rest.splitlines()), unused=unused)
    path.write_text(text)
    names: dict[str, Any] = {}
    exec(compile(text, str(path), "exec"), names)
    sites: Any = SimpleNamespace(user_files=UserFiles([str(tmp_path)], []), names=QualifiedNames())
    recording = Recording(sites)
    recording.start()
    names["step"]()
    flow = recording.stop(False)
    lines = range(1, len(text.splitlines()) + 1)
    ran = [
        line
        for line in lines
        if "x):" not in text.splitlines()[line - 1] and unused not in text.splitlines()[line - 1]
    ]
    profile = samples.profile(
        {str(path): text},
        lines=tuple(
            LineCost(str(path), line, "f", step_ms=5.0, device_ms=5.0, forward_ms=5.0, calls=1.0)
            for line in lines
        ),
    )
    executed = replace(profile.facts.executed, complete=True, lines={str(path): tuple(ran)})
    profile = replace(profile, facts=replace(profile.facts, dataflow=flow, executed=executed, **facts))
    (draft,) = LayoutChurn().find(Context(profile, lambda file: text if file == str(path) else None))
    return text, draft


@pytest.mark.parametrize(
    "rest",
    [
        "return second(F.gelu(x))",
        "return head(F.gelu(second(x)).flatten(1))",
        "return x + images",
        "held.add_(x)\nreturn held",
    ],
)
def test_a_copy_that_all_read_in_any_layout_is_left_out(tmp_path: Path, rest: str) -> None:
    text, draft = judged(tmp_path, rest)
    (fix,) = draft.fixes
    assert fix.applicability == "unsafe"
    after = apply(text, fix.edits)
    assert "    return x.permute(0, 3, 1, 2)\n" in after
    results = []
    for code in (text, after):
        names: dict[str, Any] = {}
        exec(code, names)
        results.append(names["step"]())
    torch.testing.assert_close(*results)


@pytest.mark.parametrize(
    ("rest", "reason"),
    [
        # The convolution keeps the layout, and the view raises an error.
        ("return F.gelu(second(x)).view(2, -1)", "use `reshape`"),
        # A copy in another layout: what is written into it would be lost.
        ("y = second(x)\ny.flatten(1).mul_(2)\nreturn y", "through a view"),
        ("y = second(x)\nx.add_(1)\nreturn y", "something writes"),
    ],
)
def test_it_stays_where_something_would_fail_or_change(tmp_path: Path, rest: str, reason: str) -> None:
    _, draft = judged(tmp_path, rest)
    assert draft.fixes == ()
    assert reason in draft.message


def test_a_view_that_did_not_run_may_need_it(tmp_path: Path) -> None:
    _, draft = judged(tmp_path, "return second(x)", unused="return second(x).view(-1)")
    assert draft.fixes == ()


def test_kernels_of_the_scripts_own_may_need_it(tmp_path: Path) -> None:
    site = Site("triton", str(tmp_path / "model.py"), 20, "step", {}, ())
    _, draft = judged(tmp_path, "return second(x)", sites=(site,))
    assert draft.fixes == ()
