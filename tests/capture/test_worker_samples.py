"""Lines of workers by samples: against a clock in this process, and by arithmetic."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import pytest

from warpline.capture.runner.lines.userfiles import UserFiles
from warpline.capture.runner.workers.merged import merged
from warpline.capture.runner.workers.sampled import Sampled, times, with_inner

HERE = str(Path(__file__).resolve())
SECONDS = 2.0


def helper(number: int) -> int:
    return number * 3 + 1


def load(took: dict[str, float]) -> None:
    """A batch: a comprehension, and a generator that calls a function."""
    begin = time.perf_counter()
    squares = [number * number % 7 for number in range(60_000)]
    middle = time.perf_counter()
    total = sum(helper(number) for number in squares[:30_000])
    took["comprehension"] += middle - begin
    took["generator"] += time.perf_counter() - middle
    assert total


def line_of(text: str) -> int:
    lines = Path(HERE).read_text(encoding="utf-8").splitlines()
    return next(at for at, line in enumerate(lines, 1) if text in line)


def test_plain_python_takes_what_a_clock_says() -> None:
    """Under a trace function it is many times that."""
    sampled, took = Sampled(), {"comprehension": 0.0, "generator": 0.0}
    batches, until = 0, time.monotonic() + SECONDS
    while time.monotonic() < until:
        sampled.batch(True)
        load(took)
        batches += 1
    sampled.batch(False)
    told = sampled.told(UserFiles([str(Path(HERE).parent)], []), [load.__code__, helper.__code__])
    assert told is not None
    assert told["batches"] == batches
    found = times([{"sampled": told}])
    assert found is not None
    counts, sample_ns = found
    wanted = {
        "comprehension": [line_of("squares = [")],
        "generator": [line_of("total = sum("), line_of("return number * 3")],
    }
    for name, lines in wanted.items():
        count = sum(counts.get((HERE, line), 0) for line in lines)
        truth_ms = 1000 * took[name] / batches
        # The goal is a tenth; five standard deviations of a count come on top of it.
        assert count * sample_ns / 1e6 == pytest.approx(truth_ms, rel=0.1 + 5 / math.sqrt(count)), name


def told(sampled: dict[str, Any] | None) -> dict[str, Any]:
    return {
        "recorded": 1, "recorded_ns": 90_000_000, "events": 10, "event_ns": 100.0, "plain_ns": [5_000_000],
        "lines": [["/p/a.py", 3, "f", 1e6, 2, 1], ["/p/a.py", 5, "f", 1e6, 2, 1],
                  ["/p/a.py", 5, "f.<genexpr>", 8e7, 4, 9], ["/p/a.py", 7, "f", 8e6, 2, 1]],
        "sampled": sampled,
    }  # fmt: skip


def test_samples_say_how_long_and_the_record_how_often() -> None:
    """1,000 samples in 20 batches of 5 ms: one is 5 us a batch."""
    seen = {"batches": 20, "ns": 100_000_000, "total": 1000}
    counts = [["/p/a.py", 3, 200], ["/p/a.py", 5, 700], ["/p/a.py", 7, 1]]
    found = merged([told({**seen, "lines": counts})])
    assert found is not None
    assert found["batch_ms"] == pytest.approx(5.0)
    rows = {(line["line"], line["function"]): line for line in found["lines"]}
    assert rows[5, "f.<genexpr>"]["batch_ms"] == pytest.approx(3.5)
    assert rows[5, "f"]["batch_ms"] == 0
    assert rows[3, "f"]["batch_ms"] == pytest.approx(1.0)
    assert rows[7, "f"]["batch_ms"] == pytest.approx(0.01), "few samples: no longer than they allow"
    assert rows[5, "f.<genexpr>"]["calls"] == 9


@pytest.mark.parametrize("few", [None, {"batches": 2, "ns": 1, "total": 50, "lines": [["/p/a.py", 3, 50]]}])
def test_with_few_samples_the_recorded_times_stay(few: dict[str, Any] | None) -> None:
    found = merged([told(few)])
    assert found is not None
    assert max(line["batch_ms"] for line in found["lines"]) > 50


def test_code_inside_of_code_counts() -> None:
    assert {code.co_name for code in with_inner([load.__code__])} >= {"load", "<genexpr>"}
