"""Trials in another precision: switching it is part of both times, or of neither."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

torch = pytest.importorskip("torch")

from warpline.capture.runner.probing.products import KINDS  # noqa: E402
from warpline.wire.probing import Question, Tensor  # noqa: E402


@pytest.fixture(autouse=True)
def precision() -> Iterator[None]:
    now = torch.backends.cuda.matmul.allow_tf32
    yield
    torch.backends.cuda.matmul.allow_tf32 = now


@pytest.mark.parametrize(
    ("kind", "dtype", "option"),
    [
        ("narrower", "double", "tf32"),
        ("narrower", "double", "bf16"),
        ("product", "float", "bf16"),
        ("product", "float", "tf32"),
    ],
)
def test_both_sides_switch_the_precision(kind: str, dtype: str, option: str) -> None:
    pair = KINDS[kind](Question(kind, (Tensor((8, 8), dtype),) * 2, (option,)), "cpu")
    for work in (pair.before, pair.after):
        set_to = []
        for before in (True, False):
            torch.backends.cuda.matmul.allow_tf32 = before
            work()
            set_to.append(torch.backends.cuda.matmul.allow_tf32)
        assert set_to[0] == set_to[1]  # whatever it was
