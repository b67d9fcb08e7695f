"""unused-logits: positions are selected before the layer, in functions that run before and after it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tests import samples
from warpline.model.profile import LineCost, Op
from warpline.rulekit import Context
from warpline.rules.unused_logits import UnusedLogits
from warpline.text.edits import apply

SCRIPT = """\
import torch
import torch.nn.functional as F
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.head = {head}
        self.table = nn.Embedding(40, 8)
        self.rows, self.last = torch.arange(2), torch.tensor([1, 4])

    def forward(self, x, where):
{body}

torch.manual_seed(0)
net, x, where = Net(), torch.randn(2, 6, 8), torch.tensor([[0, 3], [2, 5]])

def step():
    {step}.square().sum()
"""
ALL = "return net(x, where)"
LINEAR = "nn.Linear(8, 40)"


def edited(tmp_path: Path, body: str, head: str = LINEAR, step: str = ALL) -> tuple[str, str | None]:
    """The script, and with the edit; None where none is offered."""
    from warpline.capture.runner.dataflow.mode import Recording
    from warpline.capture.runner.lines.names import QualifiedNames
    from warpline.capture.runner.lines.userfiles import UserFiles

    path = tmp_path / "net.py"
    body = "\n".join(f"        {one}" for one in body.splitlines())
    text = SCRIPT.format(head=head, body=body, step=step)
    path.write_text(text)
    names: dict[str, Any] = {}
    exec(compile(text, str(path), "exec"), names)
    sites: Any = SimpleNamespace(user_files=UserFiles([str(tmp_path)], []), names=QualifiedNames())
    recording = Recording(sites)
    recording.start()
    names["step"]()
    flow = recording.stop(False)
    op = Op("aten::addmm", "forward", count=1.0, cpu_ms=1.0, device_ms=5.0, shapes=((12, 40),))
    costs = tuple(
        LineCost(str(path), line, "f", step_ms=5.0, device_ms=5.0, calls=1.0, ops=(op,))
        for line in range(1, len(text.splitlines()) + 1)
    )
    profile = samples.profile({str(path): text}, lines=costs)
    profile = replace(profile, facts=replace(profile.facts, dataflow=flow))
    (draft,) = UnusedLogits().find(Context(profile, lambda file: text if file == str(path) else None))
    return text, apply(text, draft.fixes[0].edits) if draft.fixes else None


def outcome(text: str) -> list[torch.Tensor]:
    names: dict[str, Any] = {}
    exec(compile(text, "/example/net.py", "exec"), names)
    result = names["step"]()
    return [result, *torch.autograd.grad(result, list(names["net"].head.parameters()), allow_unused=True)]


WIDE = "where.unsqueeze(-1).expand(-1, -1, scores.size(-1))"


@pytest.mark.parametrize(
    ("body", "after"),
    [
        ("return self.head(self.norm(x))[:, -1]", "return self.head(self.norm(x)[:, -1])"),
        ("scores = self.head(self.norm(x))\nreturn scores[:, -1]", "self.head(self.norm(x)[:, -1])"),
        (
            "scores = self.head(x)\nx = scores.unflatten(1, (2, 3))[:, :, 1]\nreturn x",
            "scores = self.head(x.unflatten(1, (2, 3))[:, :, 1])",
        ),
        ("scores = self.head(x)\nreturn scores[:, -1, :]", "scores = self.head(x[:, -1, :])"),
        ("scores = self.head(x)\nreturn scores[self.rows, self.last]", "self.head(x[self.rows, self.last])"),
        ("scores = self.head(x)\nreturn scores.select(1, -1)", "scores = self.head(x.select(1, -1))"),
        (
            "seen = x[..., 0] > 0.9\nscores = self.head(x)\nreturn scores[seen]",
            "scores = self.head(x[seen])",
        ),
        (
            "seen = x[..., 0].flatten() > 0.9\nscores = self.head(x)\nreturn scores.flatten(0, 1)[seen]",
            "scores = self.head(x.flatten(0, 1)[seen])",
        ),
        (f"scores = self.head(x)\nreturn scores.gather(1, {WIDE})", "self.head(x.gather(1, where.unsq"),
        (
            "scores = self.head(self.norm(x))\nreturn torch.take_along_dim(scores, where[..., None], dim=1)",
            "scores = self.head(torch.take_along_dim(self.norm(x), where[..., None], dim=1))",
        ),
        (
            "scores = F.linear(x * 2, self.table.weight)\nscores = scores[:, -1]\nreturn scores",
            "scores = F.linear((x * 2)[:, -1], self.table.weight)",
        ),
        (
            "scores = self.norm(x) @ self.table.weight.T\nreturn scores[:, :1]",
            "scores = self.norm(x)[:, :1] @ self.table.weight.T",
        ),
        (
            "x = self.norm(x).flatten(0, 1)\nx = self.head(x)\nx = x.view(len(where), -1, 40)\nx = x[:, -1]\n"
            "return x",
            "x = self.head(x.unflatten(0, (len(where), -1))[:, -1])\n        return x\n",
        ),
        (
            "x = self.head(x.flatten(0, 1))\nscores = x.reshape((2, 6, -1))\nlast = scores[:, 5]\n"
            "return last",
            "x = self.head(x.flatten(0, 1).unflatten(0, (2, 6))[:, 5])\n        last = x\n",
        ),
        (
            "rows = self.head(self.norm(x).view(-1, 8))\nreturn rows.view(2, -1, 40)[:, -1]",
            "rows = self.head(self.norm(x).view(-1, 8).unflatten(0, (2, -1))[:, -1])\n        return rows\n",
        ),
    ],
)
def test_positions_are_selected_before_the_layer(tmp_path: Path, body: str, after: str) -> None:
    text, changed = edited(tmp_path, body)
    assert changed is not None
    assert after in changed
    for one, other in zip(outcome(text), outcome(changed), strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            torch.testing.assert_close(one, other)


@pytest.mark.parametrize(
    ("body", "step", "inside", "outside"),
    [
        (
            "return self.head(self.norm(x))",
            "return net(x, where)[:, -1]",
            "return self.head(self.norm(x)[:, positions])",
            "return net(x, where, positions=-1).square()",
        ),
        (
            "scores = self.head(x)\nreturn scores",
            "scores = net(x, where)\n    last = scores.select(1, len(where))\n    return last",
            "scores = self.head(x[:, positions])",
            "scores = net(x, where, positions=len(where))\n    last = scores\n",
        ),
        (
            "positions = 1\nreturn self.head(x * positions)",
            "return net(x, where)[:, :2, :]",
            "return self.head((x * positions)[:, at_positions])",
            "return net(x, where, at_positions=slice(None, 2)).square()",
        ),
        (
            "scores = self.head(x)\nreturn x, scores",
            "_, scores = net(x, where)\n    return scores[torch.arange(2), where[:, 1]]",
            "scores = self.head(x[positions])",
            "_, scores = net(x, where, positions=(torch.arange(2), where[:, 1]))\n    return scores.square()",
        ),
        (
            "return self.head(x)",
            "seen = x[..., 0] > 0.9\n    return net(x, where)[seen]",
            "return self.head(x[positions])",
            "return net(x, where, positions=seen).square()",
        ),
    ],
)
def test_the_caller_says_which_positions(
    tmp_path: Path, body: str, step: str, inside: str, outside: str
) -> None:
    text, changed = edited(tmp_path, body, step=step)
    assert changed is not None
    assert inside in changed and outside in changed and "positions=slice(None)):\n" in changed
    for one, other in zip(outcome(text), outcome(changed), strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize(
    ("body", "step"),
    [
        ("return self.head(x), x", "return net(x, where)[0][:, -1]"),
        ("return self.head(x), x", "scores = net(x, where)\n    return scores[0][:, -1]"),
        (
            "scores = self.head(x)\nreturn scores, len(scores)",
            "scores, _ = net(x, where)\n    return scores[:, -1]",
        ),
        ("self.kept = self.head(x)\nreturn self.kept", "return net(x, where)[:, -1]"),
        ("return self.head(x)", "return net(x, where)[:, torch.randint(6, ())]"),
        ("return self.head(x)", "return net(x, where)[..., -1, :]"),
        ("return self.head(x)", "return net(x, where).mT[:, :, -1]"),
        ("return self.head(x)", "scores = net(x, where)\n    print(scores.shape)\n    return scores[:, -1]"),
        ("return self.head(x)", "return (net if len(x) else Net())(x, where)[:, -1]"),  # another one may be
        ("return self.head(x)", "return net(*(x, where))[:, -1]"),
    ],
)
def test_a_caller_that_selects_otherwise(tmp_path: Path, body: str, step: str) -> None:
    assert edited(tmp_path, body, step=step)[1] is None


def test_layers_of_each_position_in_a_row(tmp_path: Path) -> None:
    head = "nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 40))"
    text, changed = edited(tmp_path, "return self.head(x)[:, -1]", head)
    assert changed is not None and "self.head(x[:, -1])" in changed
    torch.testing.assert_close(outcome(text)[0], outcome(changed)[0])


@pytest.mark.parametrize(
    "body",
    [
        "scores = self.head(x)\nself.kept = scores.detach()\nreturn scores[:, -1]",
        "scores = self.head(x)\nlast = where[0, 1]\nreturn scores[:, last]",
        "scores = self.head(x)\nif len(x):\n    return scores[:, -1]",
        "scores = self.head(x)\nreturn scores[..., -1, :]",
        "scores = self.head(x)\nreturn scores[:, -1, :9]",
        "scores = self.head(x)\nscores = scores[:, 2:]\nreturn scores[:, -1:]",  # the second one as well
        "scores = self.head(x)\nreturn scores.view(-1, 40)[::6]",
        "return self.other(x)[:, -1]",
        "rows = self.head(x.view(-1, 8))\nx = rows.view(2, 6, 40)\nself.kept = x\nreturn x[:, -1]",
        "rows = self.head(x.view(-1, 8))\nn = len(where)\nx = rows.view(n, -1, 40)\nreturn x[:, -1]",
        "rows = self.head(x.view(-1, 8))\nx = rows.view(2, 6, 40)\nrows = [1]\nreturn x[:, -1] * len(rows)",
    ],
)
def test_what_may_need_all_positions(tmp_path: Path, body: str) -> None:
    made = LINEAR + "\n        self.other = nn.Sequential(nn.Dropout(0.1), self.head)"
    assert edited(tmp_path, body, made)[1] is None
