"""Tracks beside the original events: steps, the line of each host thread, the lines of each stream, findings.

In the Trace Event Format (Chrome's, which Perfetto reads) a process is a group of tracks, a thread a track.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from warpline.attribution.scene import Scene
from warpline.attribution.timeline import union
from warpline.model.report import Report
from warpline.text.lines import lines_of
from warpline.trace.columns import Ints
from warpline.view import text, units

Event = dict[str, Any]

#: Process numbers that Linux never gives: the most it can be told to use is 2^22.
STEPS, HOST, DEVICE, FINDINGS = range((1 << 22) + 1, (1 << 22) + 5)
_GROUPS = {
    STEPS: "Warpline: steps",
    FINDINGS: "Warpline: findings",
    HOST: "Warpline: source lines, host",
    DEVICE: "Warpline: source lines, device",
}
CATEGORY = "warpline"
#: Left free at the end of each slice. Perfetto drops a slice that begins before the one in front of it has
#: ended, and reads times as floating point numbers, which puts both up to a nanosecond off.
GAP_NS = 2


class Tracks:
    """The events of all tracks. ``base_ns`` is where the trace's own times begin."""

    def __init__(self, scene: Scene, report: Report, base_ns: int, cwd: str) -> None:
        self.scene, self.report, self.base_ns = scene, report, base_ns
        table, sources = scene.table, scene.trace.sources
        names = text.names({file for file in table.file if file} | _files(report), cwd)
        written = {file: lines_of(source) for file, source in sources.items()}
        self.names = names
        costs = {(line.file, line.line): line for line in report.lines}
        self.labels: list[str] = []
        self.arguments: list[Event] = []
        for file, line, function in zip(table.file, table.line, table.function, strict=True):
            lines = written.get(file, [])
            words = text.printable(lines[line - 1].strip()) if 0 < line <= len(lines) else ""
            self.labels.append(f"{names.get(file, '')}:{line} {words}".strip())
            cost = costs.get((file, line))
            known = {"step_ms": cost.step_ms, "device_ms": cost.device_ms} if cost is not None else {}
            self.arguments.append({"file": file, "line": line, "function": text.printable(function), **known})

    def events(self) -> Iterator[Event]:
        """All events of the tracks in Perfetto's JSON form."""
        for order, (process, name) in enumerate(_GROUPS.items()):
            yield _meta("process_name", process, 0, {"name": name})
            yield _meta("process_sort_index", process, 0, {"sort_index": order - len(_GROUPS)})
        yield from self._steps()
        yield from self._host()
        yield from self._device()
        yield from self._findings()

    def _steps(self) -> Iterator[Event]:
        for number, (start, end) in enumerate(self.scene.trace.manifest.captured):
            yield self._slice(f"step {number}", (start, end), (STEPS, 1), {})

    def _host(self) -> Iterator[Event]:
        """Neighbouring pieces of one line are one slice."""
        for thread, pieces in zip(self.scene.trace.threads, self.scene.lines, strict=True):
            rows = np.flatnonzero((pieces.line > 0) & (pieces.end_ns > pieces.start_ns))
            if not len(rows):
                continue
            yield _meta("thread_name", HOST, thread, {"name": f"thread {thread}"})
            line, start, end = pieces.line[rows], pieces.start_ns[rows], pieces.end_ns[rows]
            begins = np.ones(len(rows), bool)
            begins[1:] = (line[1:] != line[:-1]) | (start[1:] != end[:-1])
            first = np.flatnonzero(begins)
            last = np.append(first[1:], len(rows)) - 1
            for at, span in zip(line[first].tolist(), _spans(start[first], end[last]), strict=True):
                yield self._slice(self.labels[at], span, (HOST, thread), self.arguments[at])

    def _device(self) -> Iterator[Event]:
        """A kernel's slice bears its line; one that several lines share bears them all."""
        kernels, shares, trace = self.scene.trace.kernels, self.scene.shares, self.scene.trace
        of: dict[int, list[int]] = {}
        for kernel, line in zip(shares.kernel.tolist(), shares.line.tolist(), strict=True):
            if line:
                of.setdefault(kernel, []).append(line)
        streams: dict[tuple[int, int], int] = {}
        spans = _spans(kernels.start_ns, kernels.end_ns)
        for at, (device, stream, name, span) in enumerate(
            zip(kernels.device.tolist(), kernels.stream.tolist(), kernels.name.tolist(), spans, strict=True)
        ):
            if at not in of:
                continue
            track = streams.setdefault((device, stream), len(streams) + 1)
            label = " + ".join(self.labels[line] for line in of[at])
            kernel = {"kernel": text.printable(trace.names[name])}
            yield self._slice(label, span, (DEVICE, track), self.arguments[of[at][0]] | kernel)
        for (device, stream), track in streams.items():
            yield _meta("thread_name", DEVICE, track, {"name": f"device {device}, stream {stream}"})

    def _findings(self) -> Iterator[Event]:
        """Each finding on a track of its own, over the times at which its hot line ran, host and device."""
        for number, finding in enumerate(self.report.findings, 1):
            line = self.scene.table.number(finding.cause.file, finding.cause.line)
            if not line:
                continue
            place = f"{self.names.get(finding.file) or text.printable(finding.file)}:{finding.line}"
            yield _meta("thread_name", FINDINGS, number, {"name": f"{finding.rule} at {place}"})
            said: Event = {
                "message": text.printable(finding.message),
                "severity": finding.severity,
                "at": place,
            }
            said |= {one.metric: units.evidence(one.value, one.unit) for one in finding.evidence}
            if finding.predicted is not None:
                said["predicted gain"] = units.gain(finding.predicted.speedup)
            if finding.measured is not None:
                said["measured gain"] = units.gain(finding.measured.speedup)
            for span in self._when(line):
                yield self._slice(finding.rule, span, (FINDINGS, number), said)

    def _when(self, line: int) -> Iterable[tuple[int, int]]:
        kernels, shares = self.scene.trace.kernels, self.scene.shares
        rows = shares.kernel[shares.line == line]
        pieces = [
            (part.start_ns[part.line == line], part.end_ns[part.line == line]) for part in self.scene.lines
        ]
        start, end = (
            np.concatenate(columns)
            for columns in zip(*pieces, (kernels.start_ns[rows], kernels.end_ns[rows]), strict=True)
        )
        return _spans(*union(start, end))

    def _slice(self, name: str, span: tuple[int, int], where: tuple[int, int], args: Event) -> Event:
        """Microseconds; three decimals are nanoseconds."""
        start, end = span
        return {
            "ph": "X", "cat": CATEGORY, "name": name, "pid": where[0], "tid": where[1],
            "ts": (start - self.base_ns) / 1000, "dur": max(0, end - start - GAP_NS) / 1000, "args": args,
        }  # fmt: skip


def _files(report: Report) -> set[str]:
    return {finding.file for finding in report.findings}


def _spans(start: Ints, end: Ints) -> Iterable[tuple[int, int]]:
    return zip(start.tolist(), end.tolist(), strict=True)


def _meta(name: str, process: int, track: int, args: Event) -> Event:
    return {"ph": "M", "name": name, "pid": process, "tid": track, "ts": 0, "args": args}
