"""Times of the host's lines by samples, on runs built by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.kineto import KinetoRun, at_line, closed
from warpline import attribution
from warpline import trace as traces
from warpline.attribution.sampled import FEWEST, OFF, OFF_SAMPLES, factors
from warpline.attribution.table import line_table
from warpline.model.profile import Profile
from warpline.wire.run import DeviceFacts, Locations
from warpline.wire.samples import Samples

FILE = "/project/train.py"
TABLE = line_table(Locations((FILE,), ("main",), ((-1, 0, -1), (0, 10, 0), (0, 11, 0), (0, 12, 0)), (1,)))


def estimates(samples: Samples, seen: list[float]) -> list[float]:
    """Shares of the step, as an account would have them."""
    given = np.array(seen) * factors(samples, TABLE, np.array(seen))
    return list(given / given.sum())


def test_many_samples_outweigh_the_trace() -> None:
    samples = Samples(2000, ((FILE, 10, 1000), (FILE, 11, 1000)))
    assert estimates(samples, [0.0, 9.0, 1.0, 0.0])[1:3] == pytest.approx([0.5, 0.5], abs=0.02)


def test_a_line_that_no_sample_fell_on_keeps_a_part_of_what_the_trace_says() -> None:
    samples = Samples(1000, ((FILE, 10, 1000),))
    share = estimates(samples, [0.0, 999.0, 1.0, 0.0])[2]
    shape = 1 / (OFF**2 + OFF_SAMPLES**2)  # one sample was expected
    assert share == pytest.approx(0.001 * shape / (1 + shape), rel=0.02)


def test_what_the_trace_lost_of_a_line_is_found_by_samples() -> None:
    """A line that kept a thousandth of the step has most of what was sampled in it, not a handful."""
    samples = Samples(1000, ((FILE, 10, 500), (FILE, 11, 400), (FILE, 12, 100)))
    shares = estimates(samples, [0.0, 9.0, 0.01, 0.99])
    assert 0.2 < shares[2] < 0.4
    assert shares[1] > shares[2] > shares[3]


def test_too_few_samples_change_nothing() -> None:
    samples = Samples(FEWEST - 1, ((FILE, 10, FEWEST - 1),))
    assert estimates(samples, [0.0, 1.0, 3.0, 0.0]) == [0.0, 0.25, 0.75, 0.0]


def test_samples_in_no_line_of_the_run_are_nobody_s() -> None:
    samples = Samples(2000, ((FILE, 10, 900), ("/elsewhere.py", 3, 200), (FILE, 11, 900)))
    assert estimates(samples, [0.0, 5.0, 5.0, 0.0])[1:3] == pytest.approx([0.5, 0.5])


def test_a_function_of_many_lines_has_the_samples_of_all_of_them() -> None:
    """The trace gives its fifty lines a tenth of what the samples do; each line alone keeps too little."""
    lines = [(0, line, 1) for line in range(20, 70)]
    locations = Locations((FILE,), ("main", "parse"), ((-1, 0, -1), (0, 10, 0), *lines), (1,))
    table = line_table(locations)
    samples = Samples(1000, ((FILE, 10, 700), *((FILE, line, 6) for _, line, _ in lines)))
    seen = np.array([0.0, 970.0, *[0.6] * 50])
    given = seen * factors(samples, table, seen)
    assert given[2:].sum() / given.sum() == pytest.approx(0.3, abs=0.04)
    assert given[1] / given.sum() == pytest.approx(0.7, abs=0.04)


def test_operators_and_python_of_a_line_are_sampled_alike_and_lines_make_the_step(tmp_path: Path) -> None:
    run = KinetoRun(tmp_path, 1000, device=DeviceFacts("cpu", "a CPU", 1))
    run.line(0, 10)  # 600 us as seen, half of it an operator; 200 in truth
    run.op("aten::tanh", 100, 300)
    run.line(600, 11)  # 400 us as seen, 800 in truth
    profile = sampled(run, {10: 400, 11: 1600})
    first, second = at_line(profile, 10), at_line(profile, 11)
    assert first.step_ms == pytest.approx(0.2, rel=0.02)
    assert second.step_ms == pytest.approx(0.8, rel=0.02)
    assert first.device_ms == pytest.approx(first.step_ms / 2)
    assert [op.device_ms for op in first.ops] == [pytest.approx(first.device_ms)]
    closed(profile)


@pytest.mark.parametrize(
    ("counts", "why"), [({}, "too few steps"), ({10: 60, 11: 39}, "only 99 samples were taken")]
)
def test_why_there_are_no_sampled_times(tmp_path: Path, counts: dict[int, int], why: str) -> None:
    run = KinetoRun(tmp_path, 1000, device=DeviceFacts("cpu", "a CPU", 1))
    run.line(0, 10)
    run.op("aten::tanh", 100, 300)
    run.line(600, 11)
    (said,) = (note for note in sampled(run, counts, "settrace").notes if "was not sampled" in note)
    assert why in said


def sampled(run: KinetoRun, counts: dict[int, int], line_events: str = "monitoring") -> Profile:
    run.profile()
    trace = traces.read(run.folder)
    trace = replace(trace, manifest=replace(trace.manifest, line_events=line_events))
    file = trace.locations.files[0]
    lines = tuple((file, line, count) for line, count in counts.items())
    samples = Samples(sum(counts.values()), lines, "" if counts else "too few steps")
    return attribution.attribute(replace(trace, facts=replace(trace.facts, samples=samples)))
