"""A batch of which only some samples are recorded: they stand for the others."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from warpline.capture.runner.workers import merged, traced
from warpline.capture.runner.workers.traced import Lines

SAMPLES = 10


class OnlyThis(dict):  # type: ignore[type-arg]
    """In the place of UserFiles: this file is the user's."""

    def __missing__(self, name: str) -> str | None:
        return name if name == __file__ else None


def sample(at: int) -> int:
    if at == 0:
        return opened()
    return at + 1


def opened() -> int:
    return 0


def collate(made: list[int]) -> int:
    return sum(made)


LINES = {"opened": opened, "collate": collate}


def recorded(without_first: bool) -> dict[str, float]:
    """How often each function's line began, by the recorded batch."""
    fetcher: Any = SimpleNamespace(collate_fn=collate)
    recording = Lines(OnlyThis(), SAMPLES, without_first)  # type: ignore[arg-type]
    with recording, recording.knowing_collate(fetcher):
        fetcher.collate_fn([sample(at) for at in range(SAMPLES)])
    assert fetcher.collate_fn is collate
    assert recording.total_ns > 0 and not recording.failed
    found: dict[str, float] = {}
    for (code, line), (_, _, calls) in recording.spent.items():
        if code.co_name in ("opened", "collate") or line == sample.__code__.co_firstlineno + 3:
            found[code.co_name] = found.get(code.co_name, 0) + calls
    return found


def test_all_of_them() -> None:
    assert recorded(without_first=False) == {"opened": 1, "sample": SAMPLES - 1, "collate": 1}


def test_what_the_first_one_does_is_left_out() -> None:
    assert recorded(without_first=True) == pytest.approx({"sample": SAMPLES, "collate": 1})


def test_some_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traced, "ENOUGH_NS", -1)
    assert recorded(without_first=True) == {"sample": SAMPLES, "collate": 1}
    assert recorded(without_first=False) == {"opened": SAMPLES, "collate": 1}


def test_a_batch_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traced, "GIVEN_UP_NS", -1)
    recording = Lines(OnlyThis(), SAMPLES)  # type: ignore[arg-type]
    with recording:
        sample(1)
    assert recording.failed


def test_many_events_cost_what_the_batch_took_longer() -> None:
    """By arithmetic: 1,000 events at 10 us made 12 ms of 2 ms, though one of a plain loop costs 3.1 us."""
    told = {
        "recorded": 1, "recorded_ns": 12_000_000, "events": 1000, "event_ns": 3100.0, "plain_ns": [2_000_000],
        "lines": [["/p/a.py", 3, "f", 12_000_000, 1000, 500]],
    }  # fmt: skip
    found = merged.merged([told])
    assert found is not None
    assert found["batch_ms"] == pytest.approx(2.0)
