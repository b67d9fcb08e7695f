"""Runs torch's profiler by its low-level calls: C++ writes the trace, Python parses nothing."""

from __future__ import annotations

import errno
import os
from typing import Any

import torch
from torch._C._profiler import _ExperimentalConfig
from torch.autograd import (
    ProfilerActivity,
    ProfilerConfig,
    ProfilerState,
    _disable_profiler,
    _enable_profiler,
    _prepare_profiler,
    _supported_activities,
)


def _understands(setting: str) -> bool:
    asked: dict[str, Any] = {setting: True}
    try:
        _ExperimentalConfig(**asked)
    except TypeError:
        return False
    return True


#: An older torch records only the operators of the thread that starts the recording.
_ALL_THREADS = "profile_all_threads" if _understands("profile_all_threads") else ""
#: torch 2.13 and later: the same trace without ``events()``, which saves a quarter of the time of ``stop``
#: and a fifth of its memory (``benchmarks/profiler_stop.py``).
_NO_EVENTS = "trace_only" if _understands("trace_only") else ""


class Recording:
    """Ops with shapes and memory, launches and kernels. ``prepare``, ``start``, ``stop``, ``save``."""

    def __init__(self, device: bool, all_threads: bool = False, events: bool = False) -> None:
        """``device``: record kernels and launches too, if torch can see them.

        ``all_threads``: record operators of the script's other threads too; torch then records no memory.
        ``events``: needed for ``began_ns``. An older torch always makes them.
        """
        self.all_threads = all_threads
        self.can_record_all_threads = bool(_ALL_THREADS)
        self.events = events or not _NO_EVENTS
        self.settings = [_ALL_THREADS] * (all_threads and bool(_ALL_THREADS)) + [_NO_EVENTS] * (
            not self.events
        )
        self.activities = {ProfilerActivity.CPU}
        for name in ("CUDA", "XPU") if device else ():  # torch for ROCm calls AMD's CUDA
            activity, module = getattr(ProfilerActivity, name, None), getattr(torch, name.lower(), None)
            if module is not None and module.is_available() and activity in _supported_activities():
                self.activities.add(activity)
        self.result: Any = None  # torch's, once it has been stopped

    def prepare(self) -> None:
        """Set up the profiler. The first time in a process takes long."""
        _prepare_profiler(self._config(), self.activities)

    def start(self) -> None:
        """Record from here on."""
        _enable_profiler(self._config(), self.activities)

    def stop(self) -> None:
        """End the recording and keep it."""
        self.result = _disable_profiler()

    def save(self, path: str) -> None:
        """Write the Chrome trace. Raises OSError if it is incomplete (torch itself raises nothing).

        The events stay in memory until ``discard``, because freeing them takes as long as writing them.
        """
        self.result.save(path)
        if not _is_whole(path):
            raise OSError(errno.ENOSPC, "the trace is incomplete, the disk may be full")

    def discard(self) -> None:
        """Drop the recording without writing it."""
        self.result = None

    def began_ns(self) -> list[int] | None:
        """When each operator and each launch began, in no order; None where torch does not say.

        Only of a recording with ``events``.
        """
        events = self.result.events()
        if events and not hasattr(events[0], "start_ns"):
            return None
        return [event.start_ns() for event in events if event.device_type() == torch.autograd.DeviceType.CPU]

    def busy_ns(self) -> int | None:
        """How long the device worked, or on a CPU operators ran; None where torch does not say.

        Only of a recording with ``events``.
        """
        events = self.result.events()
        if events and not hasattr(events[0], "duration_ns"):
            return None
        cpu, on_device = torch.autograd.DeviceType.CPU, len(self.activities) > 1
        spans = sorted(
            (event.start_ns(), event.start_ns() + event.duration_ns())
            for event in events
            if (event.device_type() != cpu) == on_device and not _is_annotation(event)
        )
        busy = until = 0
        for start, end in spans:
            busy += max(0, end - max(start, until))
            until = max(until, end)
        return busy

    def _config(self) -> Any:
        shapes, memory, stack, flops, modules = True, True, False, False, False
        asked: dict[str, Any] = dict.fromkeys(self.settings, True)
        extra = _ExperimentalConfig(**asked)
        return ProfilerConfig(ProfilerState.KINETO, shapes, memory, stack, flops, modules, extra)


def _is_annotation(event: Any) -> bool:
    """Whether it is a range that the script names, which may hold idle time."""
    return hasattr(event, "is_user_annotation") and bool(event.is_user_annotation())


def _is_whole(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.path.getsize(path) - 16))
            return file.read().rstrip().endswith(b"}")
    except FileNotFoundError:
        return False
