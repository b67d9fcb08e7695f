"""The hint at the end of a costly line: ``12.4 ms · 38 %``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from warpline.view import units
from warpline.view.anchor_lines import Standing

WORDING = "{ms} · {percent}"
THRESHOLD = 1.0


@dataclass(frozen=True, slots=True)
class Hint:
    line: int  # 0-based, in the text as it is now
    text: str
    stale: bool
    step_ms: float


def hints(
    lines: Iterable[Standing], step_ms: float, threshold: float = THRESHOLD, wording: str = WORDING
) -> Iterator[Hint]:
    """Hints for the lines that take at least ``threshold`` percent of the step."""
    for line in lines:
        if line.step_ms > 0 and line.step_ms * 100 >= threshold * step_ms:
            yield Hint(line.line, label(line, step_ms, wording), line.stale, line.step_ms)


def label(line: Standing, step_ms: float, wording: str = WORDING) -> str:
    """The hint's words. ``wording`` may name ms, percent, calls, device, memory and function."""
    words = wording
    for name, value in _VALUES.items():
        if (place := "{" + name + "}") in wording:
            words = words.replace(place, value(line, step_ms))
    return f"was {words}" if line.stale else words


def share(step_ms: float, whole_ms: float) -> float:
    """The part of the step, 0..1; 0 where the step has no length."""
    return step_ms / whole_ms if whole_ms > 0 else 0.0


#: Called only for what a wording names: an answer for a whole file has thousands of lines.
_VALUES: dict[str, Callable[[Standing, float], str]] = {
    "ms": lambda line, _: units.ms(line.step_ms),
    "percent": lambda line, step_ms: units.percent(share(line.step_ms, step_ms)),
    "calls": lambda line, _: units.count(sum(cost.calls for cost in line.costs)),
    "device": lambda line, _: units.ms(sum(cost.device_ms for cost in line.costs)),
    "memory": lambda line, _: units.size(sum(cost.memory_bytes for cost in line.costs)),
    "function": lambda line, _: line.costs[0].function,
}
