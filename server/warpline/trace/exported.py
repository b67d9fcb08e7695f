"""The contents of another profiler's export, in one form for all formats of :mod:`.foreign`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import msgspec

Event = dict[str, Any]


@dataclass
class Export:
    """The contents. Times are nanoseconds of unix time, or since the session's start if that is unknown."""

    base_ns: int = 0
    events: list[Event] = field(default_factory=list)  # as Kineto writes them into a Chrome trace
    #: (time, thread, frame as named in traces, "file.py(12): function"; "": the line is unknown from then on)
    lines: list[tuple[int, int, str]] = field(default_factory=list)
    steps: list[tuple[int, int]] = field(default_factory=list)
    devices: list[Event] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # notes for the report about its origin


class Format(Protocol):
    """A module that reads one format."""

    @property
    def ENDINGS(self) -> tuple[str, ...]:
        """Endings of files that may have this format."""
        ...

    @property
    def CONVERT(self) -> dict[str, str]:
        """Instructions for files that have to be converted first, by ending; ``{path}`` is the file."""
        ...

    def is_export(self, path: Path) -> bool:
        """Whether the file is of this format, from its first bytes."""
        ...

    def read(self, path: Path) -> Export:
        """Read the whole file. Raises Problem if that fails."""
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
