"""The processors of the host."""

from __future__ import annotations

from ..kind import Host


class Device(Host):
    """What is used where nothing else is."""
