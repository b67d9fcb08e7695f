"""Loops over numbers that do the same to the same tensors: by what was recorded, however they are written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.rulekit.graph.recording import recorded
from warpline.rulekit.graph.repeated import repeated

torch = pytest.importorskip("torch")

ROWS, LABELS = torch.randn(64, 8), torch.randint(0, 12, (64,))
LAYERS = [torch.nn.Linear(8, 8) for _ in range(12)]


def rounds(act: Callable[[], Any]) -> tuple[int, bool]:
    """As if all of this file but what is ``# above`` were the loop's lines. The count, and whether of the
    whole tensors."""
    lines = enumerate(Path(__file__).read_text().splitlines(), 1)
    own = {(__file__, line) for line, text in lines if not text.endswith("# above")}
    return repeated(recorded(act), own, least=8)


def means_by_label() -> Any:
    found = []
    for k in range(12):
        own = (k == LABELS).to(ROWS.dtype)
        found.append((ROWS * own[:, None]).sum(0) / own.sum().clamp_min(1))
    return torch.stack(found)


def frequencies() -> Any:
    return torch.cat([torch.sin(ROWS * 2.0**k) for k in range(10)], -1)


def added_up() -> Any:
    total = torch.zeros(())
    for k in range(12):
        total = total + (k == LABELS).float().var()
    return total


@pytest.mark.parametrize("act", [means_by_label, frequencies, added_up])
def test_the_same_tensors_with_another_number_each_round(act: Callable[[], Any]) -> None:
    count, whole = rounds(act)
    assert count >= 10
    assert whole


def pairs_of_columns() -> Any:
    columns = ROWS.unbind(1)
    return torch.stack([(columns[i] * columns[j]).sum() for i in range(8) for j in range(i)])


def windows_taken_first() -> Any:
    windows = [ROWS[at : at + 4] for at in range(0, 40, 4)]  # above
    found = []
    while windows:
        window = windows.pop().abs()
        found.append(torch.tanh(window + 1) - window.mean(0))
    return torch.cat(found)


def one_layer_for_all_pieces() -> Any:
    return [LAYERS[0](piece) for piece in ROWS.split(4)]


def a_layer_of_its_own_for_each_piece_of_several_tensors() -> Any:
    x = ROWS
    for weight in (torch.randn(8, 64), torch.randn(8, 64)):
        pieces = zip(x.unbind(1), weight.unbind(0), strict=True)  # above
        with torch.autocast("cpu", torch.bfloat16):
            products = [torch.dot(column, part) + column.sum() for column, part in pieces]
        x = torch.stack(products) * ROWS  # above
    return x


@pytest.mark.parametrize(
    "act",
    [
        pairs_of_columns,
        windows_taken_first,
        one_layer_for_all_pieces,
        a_layer_of_its_own_for_each_piece_of_several_tensors,
    ],
)
def test_another_piece_each_round_wherever_it_was_taken(act: Callable[[], Any]) -> None:
    count, whole = rounds(act)
    assert count >= 8
    assert not whole


def one_layer_for_each_piece() -> Any:
    return [layer(piece) for layer, piece in zip(LAYERS, ROWS.split(4), strict=False)]


def a_scan_over_pieces() -> Any:
    level, found = torch.zeros(8), []
    for piece in ROWS.unbind(0):
        level = torch.tanh(level * 0.9) * piece
        found.append(level)
    return found


def few_pieces() -> Any:
    query, key, value = ROWS.repeat(1, 3).chunk(3, 1)
    return [torch.tanh(one) for one in (query, key, value)]


def tensors_that_are_no_pieces() -> Any:
    rows = [torch.randn(4) for _ in range(12)]
    return [torch.tanh(row) for row in rows]


def pieces_of_different_tensors() -> Any:
    columns = [torch.randn(64) for _ in range(12)]
    batch = [column[8:16] for column in columns]  # above
    return [torch.tanh(column) for column in batch]


def few_pieces_of_many_tensors() -> Any:
    tables = [torch.randn(4, 8) for _ in range(6)]
    pieces = [part for table in tables for part in table.unbind(0)]  # above
    return [torch.tanh(part) for part in pieces]


def one_layer_for_each_label() -> Any:
    return [LAYERS[k](ROWS[k == LABELS]) for k in range(12)]


def needs_the_round_before() -> Any:
    x = ROWS
    for k in range(12):
        x = torch.tanh(x) * ROWS.pow(k).mean()
    return x


def the_same_each_time() -> Any:
    return [ROWS * 2.0 for _ in range(12)]


def few() -> Any:
    return [k == LABELS for k in range(4)]


@pytest.mark.parametrize(
    "act",
    [
        one_layer_for_each_label,
        needs_the_round_before,
        the_same_each_time,
        few,
        one_layer_for_each_piece,
        a_scan_over_pieces,
        few_pieces,
        tensors_that_are_no_pieces,
        pieces_of_different_tensors,
        few_pieces_of_many_tensors,
    ],
)
def test_other_loops(act: Callable[[], Any]) -> None:
    assert rounds(act) == (0, False)
