"""Chooses between the two ways of recording lines."""

from __future__ import annotations

import sys
from typing import Union

from .locations import Locations
from .monitoring import Monitoring, free_tool
from .tracing import Tracing

LineEvents = Union[Monitoring, Tracing]

NOTE = (
    "the script uses every tool id of sys.monitoring: lines were recorded by a trace function, which is "
    "slower and misses threads that were already running"
)


def usable(locations: Locations, before: LineEvents | None = None) -> tuple[LineEvents, str]:
    """Line events for a capture that begins now, and a note. Keeps ``before`` if it is still usable."""
    if sys.version_info < (3, 12):
        return before or Tracing(locations), ""
    if isinstance(before, Tracing) or free_tool() is not None:
        return before or Monitoring(locations), ""
    return Tracing(locations), NOTE
