"""Tracks of the other ranks, shifted so that their collectives align with this rank's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from statistics import median

from warpline.attribution.communication import GLOO
from warpline.attribution.tracks import MOST_ITEMS, SYNTHETIC_COPY
from warpline.model.tracks import Timeline, Track
from warpline.trace.events import Interned

#: Most items of all other ranks together.
_MOST = MOST_ITEMS // 3


def with_ranks(own: Timeline, others: Mapping[int, Timeline]) -> Timeline:
    """``own`` with the streams of ``others`` (by rank); for ranks without streams, their lines and
    collectives.

    The ranks' clocks are not compared. All ranks leave a collective together, so each rank is shifted by the
    median distance between the ends of its collectives and of this rank's. If the collectives cannot be
    matched one to one, it is shifted so that the first steps begin together.
    """
    labels, lines = Interned(own.labels), Interned(own.lines)
    tracks, left_out = list(own.tracks), own.left_out
    for rank, other in others.items():
        shown = [track for track in other.tracks if _stands_for(track, other)]
        most = _MOST // max(1, len(others) * len(shown))
        by = _distance(own, other)
        for track in shown:
            rows = _kept(track, by, own.length_ns, most)
            left_out += len(track.start_ns) - len(rows)
            moved = _moved(track, rows, (by, own.length_ns), other, (labels, lines))
            tracks.append(replace(moved, name=f"Rank {rank}, {track.name[0].lower()}{track.name[1:]}"))
    return replace(
        own,
        labels=tuple(labels.index),
        lines=tuple(lines.index),
        tracks=tuple(track for track in tracks if track.start_ns),
        left_out=left_out,
    )


def _stands_for(track: Track, timeline: Timeline) -> bool:
    if any(each.kind == "stream" for each in timeline.tracks):
        return track.kind == "stream"
    return track.name == "Lines, main thread" or bool(_ends_of(track, timeline))


def _distance(own: Timeline, other: Timeline) -> int:
    ends, others = _ends(own), _ends(other)
    if ends and len(ends) == len(others):
        return round(median(mine - theirs for mine, theirs in zip(ends, others, strict=True)))
    return own.steps[0][0] - other.steps[0][0]


def _ends(timeline: Timeline) -> list[int]:
    return sorted(end for track in timeline.tracks for end in _ends_of(track, timeline))


def _ends_of(track: Track, timeline: Timeline) -> list[int]:
    """When the track's collectives end: kernels on a GPU, else Gloo's ranges."""
    spans = zip(track.start_ns, track.length_ns, track.sort, track.label, strict=True)
    if track.kind == "stream":
        return [start + length for start, length, sort, _ in spans if sort == SYNTHETIC_COPY + 1]
    if track.kind == "marks":
        return [start + length for start, length, _, name in spans if timeline.labels[name].startswith(GLOO)]
    return []


def _kept(track: Track, by: int, length_ns: int, most: int) -> list[int]:
    """Rows of the ``most`` longest items that are inside the capture after the shift ``by``, in order."""
    spans = zip(track.start_ns, track.length_ns, strict=True)
    rows = [row for row, (start, length) in enumerate(spans) if -length < start + by < length_ns]
    rows.sort(key=lambda row: -track.length_ns[row])
    return sorted(rows[:most])


def _moved(
    track: Track, rows: list[int], to: tuple[int, int], other: Timeline, tables: tuple[Interned, Interned]
) -> Track:
    """The ``rows`` of ``track``, renumbered with ``tables`` (labels, lines). ``to``: the shift, and the end
    of the capture at which items are cut, both in ns."""
    (by, end_ns), (labels, lines) = to, tables
    starts = [max(0, track.start_ns[row] + by) for row in rows]
    ends = [min(end_ns, track.start_ns[row] + track.length_ns[row] + by) for row in rows]
    at = [other.lines[track.line[row]] if track.line[row] >= 0 else None for row in rows]
    return replace(
        track,
        start_ns=tuple(starts),
        length_ns=tuple(end - start for start, end in zip(starts, ends, strict=True)),
        label=tuple(labels.index[other.labels[track.label[row]]] for row in rows),
        line=tuple(lines.index[place] if place is not None else -1 for place in at),
        depth=tuple(track.depth[row] for row in rows),
        sort=tuple(track.sort[row] for row in rows),
    )
