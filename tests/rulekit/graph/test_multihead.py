"""`nn.MultiheadAttention` computes weights that nothing reads, unless it is told not to."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tests.annotated import FILE, read_example, texts
from tests.rulekit.graph.recording import recorded
from warpline.rulekit import Context, Refused
from warpline.rulekit.graph.attention import attentions, unread_weights
from warpline.rules.hand_written_attention import without_weights
from warpline.text.edits import apply

torch = pytest.importorskip("torch")

HEADS = torch.nn.MultiheadAttention(32, 4, batch_first=True)
DROPS = torch.nn.MultiheadAttention(32, 4, batch_first=True, dropout=0.1)
X = torch.randn(2, 10, 32)
MASK = torch.ones(10, 10, dtype=torch.bool).triu(1)


def written_by_the_user() -> Any:
    weights = torch.softmax(X @ X.transpose(1, 2), -1)
    return weights @ X


@pytest.mark.parametrize(
    ("module", "options"),
    [(HEADS, {}), (HEADS, {"attn_mask": MASK}), (DROPS, {}), (HEADS, {"average_attn_weights": False})],
)
def test_weights_that_nothing_reads(module: Any, options: dict[str, Any]) -> None:
    def act() -> Any:
        return module(X, X, X, **options)[0].sum()

    graph = recorded(act)
    assert len(unread_weights(graph)) == 1
    assert not attentions(graph)  # it is not the user's to write otherwise


def with_the_weights_in_the_loss(**options: Any) -> Any:
    out, weights = HEADS(X, X, X, **options)
    return out.sum() + weights.square().sum()


@pytest.mark.parametrize(
    "act",
    [
        written_by_the_user,
        with_the_weights_in_the_loss,
        partial(with_the_weights_in_the_loss, average_attn_weights=False),
        partial(HEADS, X, X, X, need_weights=False),
    ],
)
def test_none_are_computed_or_they_are_read(act: Callable[[], Any]) -> None:
    assert not unread_weights(recorded(act))


def _edited(line: str) -> str:
    text = f"import torch\ndef forward(self, x):\n    {line}\n"
    example = read_example(text)
    context = Context(example.profile, texts(example))
    return apply(text, without_weights(context, (FILE, 3)).edits).splitlines()[2].strip()


@pytest.mark.parametrize(
    ("line", "edited"),
    [
        ("h, _ = self.attn(x, x, x)", "h, _ = self.attn(x, x, x, need_weights=False)"),
        (
            "x = x + self.attn(x, x, x, attn_mask=m)[0]",
            "x = x + self.attn(x, x, x, attn_mask=m, need_weights=False)[0]",
        ),
    ],
)
def test_the_call_says_that_it_needs_none(line: str, edited: str) -> None:
    assert _edited(line) == edited


@pytest.mark.parametrize(
    "line",
    [
        "h, weights = self.attn(x, x, x)",
        "h, self.weights = self.attn(x, x, x)",
        "result = self.attn(x, x, x)",
        "h, _ = self.attn(x, x, x, need_weights=need)",
        "h, _ = self.attn(x, x, x, None, True)",
        "h, _ = self.attn(*qkv)",
        "a, b = self.attn(x, x, x)[0], self.other(x, x, x)[0]",
    ],
)
def test_no_edit_where_something_may_keep_the_weights(line: str) -> None:
    with pytest.raises(Refused):
        _edited(line)
