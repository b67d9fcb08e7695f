"""Padding of series of numbers, which recurrent layers read without a mask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.rulekit.graph.recording import recorded

torch = pytest.importorskip("torch")
nn = torch.nn
rnn = torch.nn.utils.rnn

LENGTHS = [31, 12, 9, 20]
SERIES = [torch.randn(length, 5) for length in LENGTHS]
PADDED = 4 * 31 - sum(LENGTHS)
LAYERS: dict[bool, list[Any]] = {True: [], False: []}
for first, made in LAYERS.items():
    made += [nn.GRU(5, 6, batch_first=first), nn.LSTM(5, 6, 2, batch_first=first, bidirectional=True)]
    made += [nn.RNN(5, 6, batch_first=first), nn.RNN(5, 6, nonlinearity="relu", batch_first=first)]


def padding(act: Callable[[], Any]) -> list[tuple[int, int, int]]:
    return [(one.rows, one.columns, one.padded) for one in recorded(act).flow.padding if one.series]


@pytest.mark.parametrize("which", range(4))
@pytest.mark.parametrize("first", [True, False])
def test_what_a_recurrent_layer_reads_is_counted(which: int, first: bool) -> None:
    layer = LAYERS[first][which]
    assert padding(lambda: layer(rnn.pad_sequence(SERIES, batch_first=first))) == [(4, 31, PADDED)]


NAMES = ("lstm", "gru", "rnn_tanh", "rnn_relu")


def other_number() -> Any:
    return LAYERS[True][0](rnn.pad_sequence(SERIES, batch_first=True, padding_value=-1.0))


def at_the_beginning() -> Any:
    return LAYERS[True][1](torch.stack([nn.functional.pad(one, (0, 0, 31 - len(one), 0)) for one in SERIES]))


def standardised() -> Any:
    x = rnn.pad_sequence(SERIES, batch_first=True)
    return LAYERS[True][0]((x - torch.arange(5.0)) / torch.tensor([1.0, 2.0, 3.0, 0.5, 7.0]))


@pytest.mark.parametrize("act", [other_number, at_the_beginning, standardised])
def test_any_features_may_fill_rows_up(act: Callable[[], Any]) -> None:
    assert padding(act) == [(4, 31, PADDED)]


def packed() -> Any:
    return LAYERS[True][0](rnn.pack_sequence(SERIES, enforce_sorted=False))


def of_one_length() -> Any:
    return LAYERS[True][1](torch.randn(4, 31, 5))


def places_for_a_forecast() -> Any:
    x = torch.randn(4, 31, 5)
    x[:, 24:] = 0.0
    return LAYERS[True][0](x)


def mostly_silent() -> Any:
    played = torch.rand(4, 31, 1) < 0.1
    return LAYERS[True][0](torch.randn(4, 31, 5) * played)


def one_row_at_a_time() -> Any:
    return [LAYERS[True][0](one[None]) for one in SERIES]


def without_a_batch() -> Any:
    return LAYERS[True][2](torch.zeros(31, 5))


@pytest.mark.parametrize(
    "act", [packed, of_one_length, places_for_a_forecast, mostly_silent, one_row_at_a_time, without_a_batch]
)
def test_other_series_have_no_padding(act: Callable[[], Any]) -> None:
    assert padding(act) == []


def test_torch_is_left_as_it_was() -> None:
    recorded(other_number)
    assert not set(NAMES) & set(vars(torch._VF))
