"""The recorded steps as tracks for a timeline."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from warpline import pipeline, trace
from warpline.attribution import tracks as module
from warpline.model.tracks import Timeline, Track


@pytest.fixture(scope="module")
def run(recorded: Callable[[str], Path]) -> Path:
    return recorded("loader-without-workers")


@pytest.fixture(scope="module")
def timeline(run: Path) -> Timeline:
    return pipeline.timeline_of(run)


def named(timeline: Timeline, name: str) -> Track:
    (found,) = (track for track in timeline.tracks if track.name == name)
    return found


def test_columns_are_of_one_length_sorted_and_within_the_capture(timeline: Timeline) -> None:
    assert timeline.tracks
    for track in timeline.tracks:
        columns = (track.length_ns, track.label, track.line, track.depth, track.sort)
        assert {len(column) for column in columns} == {len(track.start_ns)}
        assert list(track.start_ns) == sorted(track.start_ns)
        assert min(track.start_ns) >= 0
        assert min(track.length_ns) > 0
        assert max(a + b for a, b in zip(track.start_ns, track.length_ns, strict=True)) <= timeline.length_ns
        assert all(0 <= label < len(timeline.labels) for label in track.label)
        assert all(-1 <= line < len(timeline.lines) for line in track.line)


def test_the_stream_is_what_the_trace_has(run: Path, timeline: Timeline) -> None:
    events = trace.read(run)
    kernels, begin = events.kernels, events.window_ns[0]
    seen = (kernels.stream == 7) & (kernels.start_ns >= begin)
    stream = named(timeline, "stream 7")
    assert sum(stream.length_ns) == int((kernels.end_ns - kernels.start_ns)[seen].sum())


def test_the_device_is_idle_when_nothing_runs(timeline: Timeline) -> None:
    def spans(kind: str) -> list[tuple[int, int]]:
        return sorted(
            (start, start + length)
            for track in timeline.tracks
            if track.kind == kind
            for start, length in zip(track.start_ns, track.length_ns, strict=True)
        )

    busy, idle = spans("stream"), spans("idle")
    assert all(end <= start for (_, end), (start, _) in pairwise(idle))
    both = sorted([*busy, *idle])
    resting, reach, overlap = set(idle), 0, 0
    for start, end in both:
        if (start, end) in resting:
            overlap += max(0, reach - start)
        reach = max(reach, end)
    assert overlap == 0


def test_idle_moments_have_their_cause(timeline: Timeline) -> None:
    idle = named(timeline, "Device idle")
    by_cause = {
        cause: sum(length for length, each in zip(idle.length_ns, idle.sort, strict=True) if each == cause)
        for cause in (0, 1, 2)
    }
    assert by_cause[1] > 0.8 * sum(by_cause.values())  # the loader works in the training process


def test_marks_are_the_scripts_own_and_torchs_phases(timeline: Timeline) -> None:
    marks = named(timeline, "Marks")
    labels = {timeline.labels[label] for label in marks.label}
    assert {"forward", "backward", "optimizer", "to device"} <= labels
    assert not any(label.startswith(("ProfilerStep", "warpline.")) for label in labels)


def test_memory_is_a_curve_up_to_the_peak(run: Path, timeline: Timeline) -> None:
    assert len(timeline.memory_ns) == len(timeline.memory_bytes) <= module.MOST_POINTS + 2
    assert max(timeline.memory_bytes) == pipeline.profile_of(run).totals["peak_bytes"]


def test_the_shortest_calls_are_left_out_of_a_page_that_would_be_too_large(
    run: Path, timeline: Timeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_ITEMS", 1000)
    fewer = pipeline.timeline_of(run)
    calls = [length for track in fewer.tracks if track.kind == "ops" for length in track.length_ns]
    everything = [length for track in timeline.tracks if track.kind == "ops" for length in track.length_ns]
    assert 0 < len(calls) <= 500
    assert sorted(calls) == sorted(everything)[-len(calls) :]
    assert fewer.left_out > len(everything) - len(calls)
