"""What is beside the lines: loader workers, ranges that the user named, lines that run as one kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from warpline.model.kernel_name import readable
from warpline.model.profile import Group, Mark
from warpline.text.lines import line_at
from warpline.view import text, units
from warpline.wire.workers import Workers

_MOST = 12
#: How Inductor names the kernels that it writes. What it calls of a library is one line's, though which one
#: is not always known.
_FUSED = ("triton_", "cpp_")


#: Share of a batch from which on a line of a loader's worker is shown.
_LEAST = 0.02


def workers(times: Workers | None, sources: Mapping[str, str], names: Mapping[str, str]) -> tuple[str, ...]:
    """What a batch costs where it is made: a line for the batch, then its costliest lines."""
    if times is None:
        return ()
    how = f" ({units.count(times.batches)} batches recorded)" if times.batches else ""
    said = [f"{units.ms(times.batch_ms)} a batch in one worker{how}"]
    for line in times.lines[:_MOST]:
        share = line.batch_ms / times.batch_ms if times.batch_ms else 0.0
        if share >= _LEAST:
            code = line.text or line_at(sources.get(line.file), line.line).strip()
            place = f"{names.get(line.file, line.file)}:{line.line}"
            said.append(f"{units.ms(line.batch_ms)}, {units.percent(share)}: {place}  {text.printable(code)}")
    return tuple(said)


def marks(ranges: Sequence[Mark]) -> tuple[str, ...]:
    """Ranges of record_function and NVTX, the longest first: ``forward: 3.20 ms, 38 % of the step``."""
    ordered = sorted(ranges, key=lambda mark: -mark.wall_ms)[:_MOST]
    return tuple(
        f"{text.printable(_name(mark))}: {units.ms(mark.wall_ms)}, {units.percent(mark.share)} of the step; "
        f"{f'device {units.ms(mark.device_ms)}; ' if mark.device_ms else ''}{units.count(mark.count)} a step"
        for mark in ordered
    )


def groups(fused: Sequence[Group], names: Mapping[str, str]) -> tuple[str, ...]:
    """Fused kernels, those of the same lines together and the longest first: ``lines 11 to 13 of model.py
    run as one kernel: 2.10 ms``."""
    same: dict[tuple[tuple[tuple[str, int], ...], bool], list[Group]] = {}
    for group in fused:
        if len(group.lines) > 1 and group.kernel.startswith(_FUSED):
            same.setdefault((tuple(sorted(set(group.lines))), group.backward), []).append(group)
    ordered = sorted(same.values(), key=lambda groups: -sum(group.device_ms for group in groups))[:_MOST]
    return tuple(_fused(sorted(groups, key=lambda group: -group.device_ms), names) for groups in ordered)


def _fused(same: Sequence[Group], names: Mapping[str, str]) -> str:
    """``same``: kernels of the same lines, the longest first."""
    first = same[0]
    several = "run as one kernel" if len(same) == 1 else f"share {len(same)} fused kernels"
    time = units.ms(sum(group.device_ms for group in same))
    phase = "backward" if first.backward else "forward"
    kernel = f"{'the longest ' if len(same) > 1 else ''}{text.printable(readable(first.kernel))}"
    return f"{_lines(first, names)} {several}: {time} ({phase}, {kernel})"


def _name(mark: Mark) -> str:
    return f"{mark.domain}: {mark.name}" if mark.domain else mark.name


def _lines(group: Group, names: Mapping[str, str]) -> str:
    """``lines 3 and 7 to 9 of model.py``; files apart by commas."""
    by_file: dict[str, list[int]] = {}
    for file, line in sorted(set(group.lines)):
        by_file.setdefault(file, []).append(line)
    return ", ".join(
        f"lines {_ranges(numbers)} of {names.get(file) or text.printable(file)}"
        for file, numbers in by_file.items()
    )


def _ranges(numbers: Sequence[int]) -> str:
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    words = [str(run[0]) if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs]
    return " and ".join((", ".join(words[:-1]), words[-1])) if len(words) > 1 else words[0]
