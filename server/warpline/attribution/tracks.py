"""Trace -> Timeline: the captured steps, as recorded."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from warpline.attribution.accounting import account
from warpline.attribution.composition import idle_shares
from warpline.attribution.marks import NVTX_PREFIX
from warpline.attribution.place import PHASES
from warpline.attribution.scene import Located, Scene, locate, scene
from warpline.attribution.timeline import Pieces
from warpline.model.kernel_name import readable
from warpline.model.tracks import Kind, Timeline, Track
from warpline.trace.columns import COMMUNICATION, COPY, SET, Ints, Trace
from warpline.trace.events import Interned

#: Most calls and kernels on a page, which would load slowly with more. The shortest are omitted.
MOST_ITEMS = 150_000
#: Most points of the memory curve: about one for each pixel of a wide screen.
MOST_POINTS = 1500
#: Ranges that torch's profiler and the runner make around everything.
OUTER_MARKS = ("ProfilerStep#", "PyTorch Profiler", "warpline.")
SYNTHETIC_COPY = len(PHASES)  # after the phases: copies, then collectives


class _Maker:
    """The tracks of one span of time."""

    def __init__(self, at: Scene, span: tuple[int, int]) -> None:
        self.at, self.trace, self.span = at, at.trace, span
        self.labels, self.lines = Interned([""]), Interned()
        self.left_out = 0

    def track(
        self, name: str, kind: Kind, spans: tuple[Ints, Ints], label: Ints, line: Ints, **more: Ints
    ) -> Track:
        """A track with ``spans``, cut to the capture. ``label``: numbers of :meth:`named`; ``line``: numbers
        of the line table."""
        start, end = (np.clip(each, *self.span) for each in spans)
        kept = np.flatnonzero(end > start)
        kept = kept[np.lexsort((-end[kept], start[kept]))]
        start, end = start[kept], end[kept]
        table, numbers = self.at.table, np.unique(line)
        known = np.full(len(table), -1, np.int64)
        for each in numbers[numbers > 0].tolist():
            known[each] = self.lines.index[table.file[each], table.line[each]]
        none = np.zeros(len(label), np.int64)
        return Track(
            name,
            kind,
            tuple((start - self.span[0]).tolist()),
            tuple((end - start).tolist()),
            tuple(label[kept].tolist()),
            tuple(known[line[kept]].tolist()),
            tuple(more.get("depth", none)[kept].tolist()),
            tuple(more.get("sort", none)[kept].tolist()),
        )

    def named(self, names: Ints) -> Ints:
        """Numbers of labels for indices into the trace's names."""
        table = np.zeros(len(self.trace.names), np.int64)
        for each in np.unique(names).tolist():
            table[each] = self.labels.index[readable(self.trace.names[each]) or "?"]
        return table[names]

    def inside(self, start: Ints, end: Ints) -> Ints:
        return np.flatnonzero((end > self.span[0]) & (start < self.span[1]))

    def marks(self) -> Iterator[Track]:
        """A track of named ranges for each thread."""
        marks, names = self.trace.marks, self.trace.names
        outer = names.mask(*OUTER_MARKS)
        rows = self.inside(marks.start_ns, marks.end_ns)
        rows = rows[~outer[marks.name[rows]]]
        label = np.zeros(len(names), np.int64)
        for each in np.unique(marks.name[rows]).tolist():
            label[each] = self.labels.index[names[each].removeprefix(NVTX_PREFIX)]
        for thread in _in_order(marks.thread[rows], self.trace.main):
            mine = rows[marks.thread[rows] == thread]
            mine = mine[np.lexsort((-marks.end_ns[mine], marks.start_ns[mine]))]
            start, end = marks.start_ns[mine], marks.end_ns[mine]
            # The columns are sorted already, and `track` keeps that order.
            name = "Marks" if thread == self.trace.main else f"Marks, {self._thread(thread)}"
            none = np.zeros(len(mine), np.int64)
            yield self.track(
                name, "marks", (start, end), label[marks.name[mine]], none, depth=_depth(start, end)
            )

    def threads(self) -> Iterator[Track]:
        """A track of lines and one of operators for each thread."""
        host, trace = self.trace.host, self.trace
        rows = self.inside(host.start_ns, host.end_ns)
        rows = self._longest(rows, host.end_ns - host.start_ns)
        for thread in _in_order(np.append(host.thread[rows], trace.main), trace.main):
            name = self._thread(thread)
            pieces = _merged(self.at.lines[thread])
            pieces = pieces.take(self.inside(pieces.start_ns, pieces.end_ns))
            if (pieces.line > 0).any():
                some = pieces.take(pieces.line > 0)
                none = np.zeros(len(some), np.int64)
                yield self.track(f"Lines, {name}", "lines", (some.start_ns, some.end_ns), none, some.line)
            mine = rows[host.thread[rows] == thread]
            if len(mine):
                yield self.track(
                    f"Calls, {name}",
                    "ops",
                    (host.start_ns[mine], host.end_ns[mine]),
                    self.named(host.name[mine]),
                    self.at.placed.line[mine],
                    depth=host.depth[mine],
                    sort=self.at.placed.phase[mine],
                )

    def idle(self) -> Iterator[Track]:
        """Moments in which the device was idle, with the host's line and what the host did."""
        found = account(self.at).idle
        if not len(found):
            return
        loader, exchanged, waiting, _ = idle_shares(self.at, found)
        cause = np.where(loader >= 0.5, 1, np.where(waiting + exchanged >= 0.5, 2, 0))
        joined = _merged(found, cause)
        at = np.searchsorted(found.start_ns, joined.start_ns)
        none = np.zeros(len(joined), np.int64)
        spans = (joined.start_ns, joined.end_ns)
        yield self.track("Device idle", "idle", spans, none, joined.line, sort=cause[at])

    def streams(self) -> Iterator[Track]:
        """A track of kernels for each stream of each device."""
        kernels, shares = self.trace.kernels, self.at.shares
        line, phase = np.zeros(len(kernels), np.int64), np.zeros(len(kernels), np.int64)
        # A kernel of several lines is shown at the first of them.
        line[shares.kernel[::-1]], phase[shares.kernel[::-1]] = shares.line[::-1], shares.phase[::-1]
        sort = np.where((kernels.kind == COPY) | (kernels.kind == SET), SYNTHETIC_COPY, phase)
        sort = np.where(kernels.kind == COMMUNICATION, SYNTHETIC_COPY + 1, sort)
        rows = self.inside(kernels.start_ns, kernels.end_ns)
        rows = self._longest(rows, kernels.end_ns - kernels.start_ns)
        several = len(np.unique(kernels.device[rows])) > 1
        for each in np.unique(kernels.device_stream[rows]).tolist():
            mine = rows[kernels.device_stream[rows] == each]
            gpu = f"GPU {each >> 32}, " if several else ""
            yield self.track(
                f"{gpu}stream {each & 0xFFFFFFFF}",
                "stream",
                (kernels.start_ns[mine], kernels.end_ns[mine]),
                self.named(kernels.name[mine]),
                line[mine],
                sort=sort[mine],
            )

    def _longest(self, rows: Ints, length: Ints) -> Ints:
        most = MOST_ITEMS // 2
        if len(rows) <= most:
            return rows
        self.left_out += len(rows) - most
        return np.sort(rows[np.argsort(-length[rows], kind="stable")[:most]])

    def _thread(self, thread: int) -> str:
        if thread == self.trace.main:
            return "main thread"
        host = self.trace.host
        backward = (host.forward_thread > 0) & (host.thread == thread)
        return f"autograd thread {thread}" if backward.any() else f"thread {thread}"


def tracks(trace: Trace, located: Located | None = None) -> Timeline:
    """All captured steps. On a CPU there is no idle track: the lines show what ran."""
    at = scene(trace, located or locate(trace))
    span = at.window
    make = _Maker(at, span)
    found = [*make.marks(), *make.threads()]
    if trace.on_gpu:
        found += [*make.idle(), *make.streams()]
    times, sizes = _memory(trace, span)
    steps = [(start - span[0], end - start) for start, end in trace.manifest.captured]
    by_length = sorted(range(len(steps)), key=lambda each: (steps[each][1], each))
    return Timeline(
        span[1] - span[0],
        tuple(steps) or ((0, span[1] - span[0]),),
        by_length[(len(by_length) - 1) // 2] if steps else 0,
        tuple(make.labels.index),
        tuple(make.lines.index),
        tuple(track for track in found if track.start_ns),
        make.left_out,
        times,
        sizes,
    )


def _in_order(threads: Ints, main: int) -> list[int]:
    """Each thread once, the main one first."""
    return sorted(np.unique(threads).tolist(), key=lambda each: (each != main, each))


def _merged(pieces: Pieces, also: Ints | None = None) -> Pieces:
    """Joins adjacent pieces on the same line (and with the same ``also``)."""
    if not len(pieces):
        return pieces
    fresh = np.ones(len(pieces), bool)
    fresh[1:] = (pieces.line[1:] != pieces.line[:-1]) | (pieces.start_ns[1:] != pieces.end_ns[:-1])
    if also is not None:
        fresh[1:] |= also[1:] != also[:-1]
    first = np.flatnonzero(fresh)
    last = np.append(first[1:], len(pieces)) - 1
    kept = pieces.take(first)
    return Pieces(kept.start_ns, pieces.end_ns[last], kept.op, kept.line, kept.working, kept.inside)


def _depth(start: Ints, end: Ints) -> Ints:
    """How many spans enclose each span. The spans are sorted by start, the longer first."""
    around: list[int] = []
    found = []
    for since, until in zip(start.tolist(), end.tolist(), strict=True):
        while around and around[-1] <= since:
            around.pop()
        found.append(len(around))
        around.append(until)
    return np.array(found, np.int64)


def _memory(trace: Trace, span: tuple[int, int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Times in ns since the capture began, and the bytes allocated from then on (the maximum of each
    interval)."""
    memory = trace.memory
    rows = np.flatnonzero(memory.on_device if trace.on_gpu else ~memory.on_device)
    if not len(rows):
        return (), ()
    # Each device has its own allocator: with several devices, the first one used is shown.
    rows = rows[memory.device[rows] == memory.device[rows[0]]]
    total = memory.total[rows]
    total = total if total.any() else np.cumsum(memory.bytes[rows])
    time = memory.time_ns[rows]
    before = int(np.searchsorted(time, span[0], "right")) - 1
    kept = np.flatnonzero((time >= span[0]) & (time < span[1]))
    if not len(kept):
        return (), ()
    stretch = (time[kept] - span[0]) * MOST_POINTS // max(1, span[1] - span[0])
    order = kept[np.lexsort((-total[kept], stretch))]
    chosen = np.sort(order[np.unique(np.sort(stretch), return_index=True)[1]])
    first = int(total[before]) if before >= 0 else int(total[kept[0]] - memory.bytes[rows][kept[0]])
    times = [0, *(time[chosen] - span[0]).tolist(), span[1] - span[0]]
    sizes = [first, *total[chosen].tolist(), int(total[kept[-1]])]
    return tuple(times), tuple(sizes)
