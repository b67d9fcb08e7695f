"""Moments of the step that belong to lines of other threads, because the main thread waited for them."""

from __future__ import annotations

import numpy as np

from warpline.attribution.scene import Scene
from warpline.attribution.timeline import Pieces, complement, overlay, union, without
from warpline.trace.columns import Ints


def by_others(scene: Scene, start: Ints, end: Ints) -> tuple[list[Pieces], Ints, Ints]:
    """What other threads did in disjoint sorted spans, and the spans that remain for the main thread.

    While the main thread waits, the thread that wakes it. While it is at no line, such as a pool's thread
    that waits for work: the threads that wait for it, the process's first one at last, and whom they wait
    for.
    """
    threads, main = scene.trace.threads, scene.trace.main
    found, start, end = _waited(scene, main, start, end)
    waiters = {one[2]: None for one in scene.trace.facts.thread_waits if one[3] == threads[main]}
    for waiter in waiters | ({threads[scene.trace.first]: None} if scene.trace.first != main else {}):
        own, _ = overlay(scene.lines[main], start, end)
        nowhere = own.take(own.line == 0)
        if waiter in threads and len(nowhere):
            at = threads.index(waiter)
            spans = union(nowhere.start_ns, nowhere.end_ns)
            more, *rest = _waited(scene, at, *spans)
            part, _ = overlay(scene.lines[at], *rest)
            more.append(part.take(part.line > 0))
            for part in more:
                start, end = without(start, end, *union(part.start_ns, part.end_ns), scene.window)
            found += more
    return found, start, end


def _waited(scene: Scene, thread: int, start: Ints, end: Ints) -> tuple[list[Pieces], Ints, Ints]:
    """The moments of spans in which ``thread`` waited and the thread that woke it was at a line of the
    user's, with that line; and the remaining spans."""
    threads, found = scene.trace.threads, []
    waits = [one for one in scene.trace.facts.thread_waits if one[2] == threads[thread]]
    for waker in {one[3]: None for one in waits if one[3] in threads}:
        spans = np.array([one[:2] for one in waits if one[3] == waker], np.int64)
        others = complement(*union(spans[:, 0], spans[:, 1]), scene.window)
        part, _ = overlay(scene.lines[threads.index(waker)], *without(start, end, *others, scene.window))
        part = part.take(part.line > 0)
        found.append(part)
        start, end = without(start, end, *union(part.start_ns, part.end_ns), scene.window)
    return found, start, end
