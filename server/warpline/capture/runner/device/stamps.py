"""The times at which the device, not the host, reached the end of each step.

The host queues work ahead of the device until the launch queue is full: its first steps look short
and those after them long, though the device works evenly. So beside each time stamp an event is
recorded (about 2 us) and read once the window is over.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .kind import Kind


class DeviceStamps:
    """``mark()`` at each boundary; ``durations_ns()`` of the steps between them."""

    def __init__(self, device: Kind) -> None:
        self.new = device.new_event
        self.events: list[Any] = []

    def mark(self) -> None:
        """Queue an event: the device reaches it when all that was queued before has run."""
        event = self.new(enable_timing=True)
        event.record()
        self.events.append(event)

    def durations_ns(self) -> list[int] | None:
        """The device's time for each step, in ns. The device must be idle by now.

        None where the events cannot tell: they were recorded on several devices or in a graph's capture, or a
        step would have ended on the device before the host ended the one before it, so that streams other
        than the current one are at work."""
        try:
            return [
                max(0, int(before.elapsed_time(after) * 1e6))
                for before, after in zip(self.events[:-1], self.events[1:])
            ]
        except (RuntimeError, ValueError):
            return None


def on_device(host_ns: tuple[int, ...], device_ns: Sequence[int]) -> tuple[int, ...]:
    """The host's durations, which add up to the window, shared out as the device's say."""
    total = sum(device_ns)
    if len(device_ns) != len(host_ns) or total <= 0:
        return host_ns
    scale = sum(host_ns) / total
    return tuple(int(duration * scale) for duration in device_ns)
