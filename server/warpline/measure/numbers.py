"""Numbers in a fix for which ``tune`` tries other values: the number of workers, the batch size."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice

from warpline.model.change import Change, LargerBatch, LoaderWorkers, Together
from warpline.text.lines import split

#: The number's name in a call or in a config dict.
_NAMES: dict[type, str] = {LoaderWorkers: "num_workers", LargerBatch: "batch_size"}


@dataclass(frozen=True, slots=True)
class Number:
    """A number to try: ``value`` instead of ``written``, which the fix wrote."""

    value: int
    written: int


Numbers = Mapping[str, Number]


def written(
    change: Change | None, plain: Mapping[str, str], overlay: Mapping[str, str]
) -> Iterator[tuple[str, int]]:
    """``(name, number)`` for each number that the fix with ``change`` wrote into ``overlay``."""
    for name in dict.fromkeys(_NAMES[type(part)] for part in parts(change) if type(part) in _NAMES):
        lines = (line for file, text in overlay.items() for line in _new_lines(plain.get(file, ""), text))
        found = (int(match[2]) for line in lines for match in _pattern(name).finditer(line))
        yield from ((name, number) for number in islice(found, 1))


def parts(change: Change | None) -> Iterator[Change]:
    """``change``, or the parts of a combined change."""
    if isinstance(change, Together):
        for part in change.changes:
            yield from parts(part)
    elif change is not None:
        yield change


def others(name: str, number: int, cores: int) -> list[int]:
    """Other values to try instead of ``number``, the most promising first."""
    if name == "num_workers":
        wanted = (number * 2, number // 2, number * 3, cores)
        return [value for value in dict.fromkeys(wanted) if 1 <= value <= cores and value != number]
    return [number * 2, number // 2]


def substituted(plain: str, text: str, name: str, value: int) -> str:
    """``text`` with ``value`` as the number for ``name``, on the lines that differ from ``plain``."""
    new = Counter(_new_lines(plain, text))
    lines = split(text)
    for at, line in enumerate(lines):
        if new[line]:
            lines[at] = _pattern(name).sub(rf"\g<1>{value}", line)
    return "".join(lines)


def renumbered(change: Change, tried: Numbers) -> Change:
    """``change`` with the numbers in ``tried``."""
    if isinstance(change, Together):
        return replace(change, changes=tuple(renumbered(part, tried) for part in change.changes))
    number = tried.get(_NAMES.get(type(change), ""))
    if number is None:
        return change
    if isinstance(change, LoaderWorkers):
        return replace(change, workers=number.value)
    if isinstance(change, LargerBatch):
        factor = change.factor * number.value / number.written
        return replace(change, factor=factor if change.epoch is None else min(factor, change.epoch))
    return change


def compiles(plain: Mapping[str, str], overlay: Mapping[str, str]) -> bool:
    """Whether ``overlay`` has lines that ``plain`` lacks and that compile something."""
    lines = (line for file, text in overlay.items() for line in _new_lines(plain.get(file, ""), text))
    return any(re.search(r"\.compile\b", line) for line in lines)


def _pattern(name: str) -> re.Pattern[str]:
    given = rf"""(\b{name}["']?\s*[:=]\s*"""
    if name == _NAMES[LargerBatch]:
        given += r"|(?=\d+ \* \w*batch)"  # 2 * BATCH
    if name == _NAMES[LoaderWorkers]:
        # An option's default, or a name of theirs, perhaps with a type.
        given += r"""|workers["'].*\bdefault\s*=\s*|\b\w*workers["']?\s*(?::\s*int\s*)?[:=]\s*"""
    return re.compile(given + r")(\d+)\b", re.IGNORECASE)


def _new_lines(plain: str, text: str) -> list[str]:
    old = Counter(split(plain))
    found = []
    for line in split(text):
        if old[line]:
            old[line] -= 1
        else:
            found.append(line)
    return found
