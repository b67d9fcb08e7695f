"""Python frames of another tool's trace -> line records: the line of each thread over time."""

from __future__ import annotations

import numpy as np

from warpline.trace import nest, running
from warpline.trace.columns import Ints, take
from warpline.trace.events import Interned, Table, spans
from warpline.trace.frames import Frames, source_of
from warpline.trace.linked import Pairs

DEFS = "the trace has Python functions but no lines: costs are shown at the def line of each function"
BEGUN = (
    "in the function that was running when the trace began, costs are shown at its last "
    "call; its lines are found by the names of the functions that they call"
)


def of_frames(table: Table, base_ns: int, frames: Frames, threads: Interned) -> tuple[Pairs, list[str]]:
    """The line records of ``python_function`` events, and notes on how exact they are."""
    name, names = table.numbered("name")
    location = frames.of_names(names)[name]
    start, end = spans([table], base_ns)
    number, values = table.numbered("tid")
    more = _begun(start, end, number, name, names, location, frames)
    users = np.flatnonzero(location)
    thread = threads.numbers((number[users], values))
    by = nest.order(thread, start[users], end[users])
    users, thread = users[by], thread[by]
    start, end, location = start[users], end[users], location[users]
    depth, parent = nest.depth_and_parent(thread, start, end)
    who, when, frame = nest.innermost(thread, start, end, depth, parent)
    where = take(location, frame, missing=0)
    if more is None:
        return (when, who, where), [DEFS]
    outer, called, place = more
    own = (frame >= 0) & (users[frame] == outer)
    last = np.searchsorted(called, when[own], "right") - 1
    where[own] = np.where(last >= 0, place[np.maximum(last, 0)], where[own])
    of_outer = np.full(len(called), thread[np.flatnonzero(users == outer)[0]])
    when, who = np.concatenate([called, when]), np.concatenate([of_outer, who])
    where = np.concatenate([place, where])
    kept = np.lexsort((when, who))  # a frame comes after its call at the same time
    return (when[kept], who[kept], where[kept]), [DEFS, BEGUN]


def _begun(
    start: Ints, end: Ints, thread: Ints, name: Ints, names: list[str], location: Ints, frames: Frames
) -> tuple[int, Ints, Ints] | None:
    """The user's frame that called the profiler when the trace began: its number, and the times and locations
    of its calls, in order. None if there is none, or if its source is not on this machine."""
    known = {number for number, text in enumerate(names) if text.startswith(running.PROFILER)}
    profilers = np.flatnonzero(np.isin(name, list(known)))
    if not len(profilers):
        return None
    same = np.flatnonzero(thread == thread[profilers[np.argmin(start[profilers])]])
    stack = same[running.begun_in(start[same], end[same], np.flatnonzero(np.isin(same, profilers)))]
    if not len(stack) or not location[stack[-1]]:
        return None
    outer = int(stack[-1])
    inside = same[(start[same] >= start[outer]) & (end[same] <= end[outer])]
    inside = inside[nest.order(thread[inside], start[inside], end[inside])]
    depth, _ = nest.depth_and_parent(thread[inside], start[inside], end[inside])
    children = inside[depth == depth[np.flatnonzero(inside == outer)[0]] + 1]
    file, line, function = frames.place(int(location[outer]))
    source = source_of(file)
    if source is None:
        return None
    lines = running.lines_of(source, line, [names[at] for at in name[children].tolist()])
    places = [frames.number(file, at, function) for at in lines]
    return outer, start[children], np.array(places, np.int64)
