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
        event = self.new(enable_timing=True)
        event.record()
        self.events.append(event)

    def durations_ns(self) -> list[int] | None:
        """None where the events cannot tell: recorded on several devices, or in a graph's capture.

        The device must be idle by now. A step that the device ended before the host's one before it
        cannot be: streams other than the current one are not seen, so each is at least 0.
        """
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
