"""What another profiler recorded, read from its export: the same for every format of :mod:`.foreign`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import msgspec

Event = dict[str, Any]


@dataclass
class Export:
    """What was found. Times are nanoseconds of unix time, or of the session where its start is not known."""

    base_ns: int = 0
    events: list[Event] = field(default_factory=list)  # as Kineto writes them into a Chrome trace
    #: (time, thread, frame as a trace names it, "file.py(12): function"; "" where no line is known any more)
    lines: list[tuple[int, int, str]] = field(default_factory=list)
    steps: list[tuple[int, int]] = field(default_factory=list)
    devices: list[Event] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # what a reader of the report must know of its origin


class Format(Protocol):
    """A module that reads one format."""

    @property
    def ENDINGS(self) -> tuple[str, ...]:
        """Endings of files that may have this format."""
        ...

    @property
    def CONVERT(self) -> dict[str, str]:
        """What to do with files that have to be converted first, by ending; ``{path}`` is the file."""
        ...

    def is_export(self, path: Path) -> bool:
        """Whether the file is of this format, from its first bytes."""
        ...

    def read(self, path: Path) -> Export:
        """All of it. Raises Problem where the file cannot be read."""
        ...


def as_chrome(export: Export) -> bytes:
    """The events as a Chrome trace."""
    return msgspec.json.encode(
        {
            "schemaVersion": 1,
            "baseTimeNanoseconds": export.base_ns,
            "deviceProperties": export.devices,
            "traceEvents": export.events,
        }
    )
