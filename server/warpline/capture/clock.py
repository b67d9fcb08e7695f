"""Time limits of a target: for its own time, and for waiting for its turn."""

from __future__ import annotations

import time

from warpline.wire import stages


class Clock:
    """A deadline that pauses while the target waits for its turn. Each wait has a limit of its own.

    ``own_s``: limit in seconds for the target's own time; None: no limit. It starts again when the target
    gets its first turn, because importing torch is not part of what is timed. ``turn_s``: limit in seconds
    for each wait; None if the target limits its waits itself.
    """

    def __init__(self, own_s: float | None, turn_s: float | None) -> None:
        self._own_s, self._turn_s = own_s, turn_s
        self._left_s = own_s
        self._deadline = _from_now(own_s)

    @property
    def late(self) -> bool:
        """Whether the deadline has passed; False without a limit."""
        return self._deadline is not None and time.monotonic() > self._deadline

    def at(self, before: str, stage: str) -> None:
        """The target went from one stage to another."""
        if stage in stages.TURNS and before not in stages.TURNS:
            if self._deadline is not None:
                self._left_s = self._deadline - time.monotonic()
            self._deadline = _from_now(self._turn_s)
        elif before in stages.TURNS and stage not in stages.TURNS:
            self._deadline = _from_now(self._own_s if before == stages.HELD else self._left_s)

    def end_within(self, seconds: float | None) -> None:
        """Set the limit to ``seconds`` from now; None: no limit."""
        self._deadline = _from_now(seconds)


def _from_now(seconds: float | None) -> float | None:
    return None if seconds is None else time.monotonic() + seconds
