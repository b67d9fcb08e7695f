"""Sorts of which few entries are read, in the spellings that people use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.rulekit.graph.recording import recorded
from warpline.rulekit.graph.sorts import partly_read

torch = pytest.importorskip("torch")

X = torch.randn(4, 64)


def best_indices() -> Any:
    return torch.argsort(X, dim=1, descending=True)[:, :5]


def values_and_indices() -> Any:
    values, indices = X.sort(-1, descending=True)
    return values[:, :5] + indices[:, :5]


def last_ones() -> Any:
    return X.argsort(1)[..., -5:]


def nearest() -> Any:
    return X.sort(dim=1, stable=True).values.narrow(1, 0, 5)


def second_smallest_row() -> Any:
    return X.t().contiguous().msort()[1]


def nearest_from_behind() -> Any:
    with torch.inference_mode():  # torch records other operators here, with the numbers as they were written
        return torch.sort(X, dim=-1)[0].narrow(-1, 0, 5)


def through_views() -> Any:
    return X.sort(1).values.t().unsqueeze(0).contiguous()[:, :5]


def first_piece() -> Any:
    return X.sort(1, descending=True).values.split([6, 58], dim=-1)[0] * 2


def best_of_all() -> Any:
    return X.sort(1, descending=True).indices.unbind(-1)[0] * 2


def turned_round() -> Any:
    return X.argsort(1).flip(-1)[:, :5]


def put_in_order_first() -> Any:
    return X.gather(1, X.argsort(1, descending=True))[:, :5]


def rows_put_in_order() -> Any:
    return X.t()[X[0].argsort()][:5]


def through_views_and_back() -> Any:
    order = X.argsort(1)
    rows = order.view(4, 64, 1).view(4, 64).expand(4, 64).detach().reshape(4, 1, 64).reshape(order.shape)
    return rows[:, :5]


def every_other() -> Any:
    return X.sort(1).values.reshape(4, 32, 2)[:, :, 0]


def last_piece_too() -> Any:
    first, rest = X.sort(1).values.split([6, 58], dim=1)
    return first.sum() + rest.sum()


def everything() -> Any:
    return X[torch.arange(4)[:, None], X.argsort(1)]


def median() -> Any:
    return X.sort(1).values[:, 32]


def both_ends() -> Any:
    values = X.sort(1).values
    return values[:, :3] + values[:, -3:]


def back_and_all() -> Any:
    order = X.argsort(1)
    again = order.view(4, 64, 1).view(4, 64)
    return order[:, :5].sum() + again.sum()


def half() -> Any:
    return X.argsort(1)[:, :32]


def other_dimension() -> Any:
    return X.argsort(1)[:1]


def nothing() -> Any:
    return X[:, :0].sort(1).values.narrow(1, 0, 0)


@pytest.mark.parametrize(
    ("act", "found"),
    [
        (best_indices, (1, 64, 5, True)),
        (values_and_indices, (1, 64, 5, True)),
        (last_ones, (1, 64, 5, True)),
        (nearest, (1, 64, 5, False)),
        (nearest_from_behind, (1, 64, 5, False)),
        (through_views, (1, 64, 5, False)),
        (through_views_and_back, (1, 64, 5, False)),
        (first_piece, (1, 64, 6, True)),
        (best_of_all, (1, 64, 1, True)),
        (turned_round, (1, 64, 5, True)),
        (put_in_order_first, (1, 64, 5, True)),
        (rows_put_in_order, (0, 64, 5, False)),
        (second_smallest_row, (0, 64, 2, False)),
    ],
)
def test_few_entries_are_read(act: Callable[[], Any], found: tuple[int, int, int, bool]) -> None:
    (one,) = partly_read(recorded(act))
    assert (one.dim, one.size, one.read, one.largest) == found


@pytest.mark.parametrize(
    "act",
    [
        everything,
        back_and_all,
        median,
        both_ends,
        half,
        other_dimension,
        nothing,
        every_other,
        last_piece_too,
    ],
)
def test_the_sort_is_needed(act: Callable[[], Any]) -> None:
    assert list(partly_read(recorded(act))) == []
