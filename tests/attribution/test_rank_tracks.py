"""Other ranks' tracks beside this rank's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from warpline import pipeline
from warpline.attribution.rank_tracks import with_ranks
from warpline.model.tracks import Timeline, Track


def stream(*spans: tuple[int, int, int], label: int = 1, line: int = 0) -> Track:
    """``spans``: start, length and sort (0 forward, 4 communication)."""
    start, length, sort = zip(*spans, strict=True)
    count = len(spans)
    return Track("stream 7", "stream", start, length, (label,) * count, (line,) * count, (0,) * count, sort)


def timeline(*tracks: Track, labels: tuple[str, ...], lines: tuple[tuple[str, int], ...]) -> Timeline:
    return Timeline(1000, ((0, 1000),), 0, labels, lines, tracks)


OWN = timeline(stream((100, 50, 0), (200, 100, 4)), labels=("", "gemm"), lines=(("a.py", 1),))
#: Its clock is 40 ahead, and its collective began later: it is the one that the other waited for.
LATE = timeline(stream((20, 210, 0), (300, 40, 4)), labels=("", "slow"), lines=(("a.py", 2),))


def test_collectives_end_together_whatever_the_clocks_say() -> None:
    both = with_ranks(OWN, {3: LATE})
    own, other = both.tracks
    assert other.name == "Rank 3, stream 7"
    assert own == OWN.tracks[0]
    assert (other.start_ns, other.length_ns) == ((0, 260), (190, 40))  # the first one is cut at the left
    assert other.start_ns[1] + other.length_ns[1] == own.start_ns[1] + own.length_ns[1]
    assert both.labels[other.label[0]] == "slow"
    assert both.lines[other.line[0]] == ("a.py", 2)


def test_first_steps_begin_together_where_exchanges_cannot_be_matched() -> None:
    fewer = replace(LATE, tracks=(stream((20, 210, 0)),), steps=((15, 900),))
    assert with_ranks(OWN, {1: fewer}).tracks[1].start_ns == (5,)


def test_what_is_out_of_view_is_left_out() -> None:
    gone = replace(LATE, tracks=(stream((20, 10, 0), (300, 40, 4), (5000, 10, 0)),))
    assert with_ranks(OWN, {1: gone}).tracks[1].start_ns == (260,)


def test_two_recorded_ranks_stand_below_each_other(recorded: Callable[[str], Path]) -> None:
    run = recorded("nccl")
    both, (_, second) = pipeline.timeline_of(run), pipeline.ranks_of(run)
    assert second.number == 1
    names = [track.name for track in both.tracks]
    assert names[-4:] == ["stream 7", "stream 17", "Rank 1, stream 7", "Rank 1, stream 17"]
    own, other = both.tracks[-3], both.tracks[-1]  # the streams with DDP's exchanges
    ends = [
        [start + length for start, length in zip(track.start_ns, track.length_ns, strict=True)]
        for track in (own, other)
    ]
    # They leave a collective together; without being moved they would be 2 ms apart here.
    apart = [abs(mine - theirs) for mine, theirs in zip(*ends, strict=True)]
    assert len(apart) == 18
    assert max(apart) < 50_000
