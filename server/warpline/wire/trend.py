"""``trend.json`` of a run: short windows of timed steps, again and again over a long run."""

from __future__ import annotations

from dataclasses import dataclass

TREND = "trend.json"
STEPS = 5  # of a window
MOST = (
    1024  # windows; when there are more every other one is dropped, and the next ones are twice as far apart
)


@dataclass(frozen=True)
class Window:
    """Some steps in a row, nothing recorded in them; the device is idle at both ends."""

    step: int  # number of its first step, counted from the end of the capture
    began_ns: int  # unix time
    steps_ns: tuple[int, ...]  # duration of each; with a device, of its host
    step_ns: float  # the whole window divided by its steps
    memory_bytes: int  # held at its end: of the current device, else of the process
    between_ns: float | None = None  # a step's mean time since the window timed before it, if any
    #: Of the step after it, where its lines were recorded: (index of ``Trend.places``, the host's time at it)
    lines_ns: tuple[tuple[int, int], ...] = ()
    lines_took_ns: int = 0  # that step, slowed by its recording; it counts for no ``between_ns``


@dataclass(frozen=True)
class Trend:
    every: int  # steps from the begin of a window to that of the next, at the end of the run
    windows: tuple[Window, ...] = ()
    places: tuple[tuple[str, int], ...] = ()  # file and line
