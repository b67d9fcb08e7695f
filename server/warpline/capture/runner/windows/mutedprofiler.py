"""The script's own torch.profiler, switched off in a run with too few steps for both profilers.

A script too short for both profilers runs twice: the first time it makes its own traces, undisturbed. The
second time its profiler records nothing, calls no handler and writes no file, so that the files of the first
run stay. ``step()`` still counts, and what was recorded reads as an empty list of events.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..patches import Patches
from .nothing import NothingRecorded

NOTE = (
    "the script's own torch.profiler was switched off while it was measured, because it has too few steps "
    "for two profilers: its traces are from the first run"
)

#: Methods of torch's profiler that write files; other versions may have others.
WRITERS = ("export_chrome_trace", "export_stacks", "export_memory_timeline")


class MutedProfiler:
    """Takes the place of ``OwnProfiler``. ``used``: the script has asked its profiler to record."""

    in_the_way = False

    def __init__(self) -> None:
        self.used = False
        self.measuring = False
        self.patches = Patches()

    @property
    def note(self) -> str:
        return NOTE if self.used else ""

    def waited_for(self) -> bool:
        """Never: a muted profiler does not run."""
        return False

    def pause(self) -> None:
        pass

    def remove(self) -> None:
        """Do nothing: if the profiler worked again after our windows, it would write the script's files."""

    def install(self) -> None:
        """Make the script's profilers do nothing; metadata that they add goes into our recording."""
        import torch.profiler.profiler as outer
        from torch.autograd import profiler as inner

        def nothing(original: Callable[..., Any]) -> Callable[..., None]:
            def muted(*arguments: object, **named: object) -> None:
                pass

            return muted

        for owner in (inner.profile, outer._KinetoProfile, outer.profile):
            for name in WRITERS:
                self.patches.replace(owner, name, nothing)
        self.patches.replace(outer.profile, "_trace_ready", nothing)
        # torch adds metadata to the active recording, whoever started it.
        for name in ("add_metadata", "add_metadata_json"):
            self.patches.replace(outer._KinetoProfile, name, nothing)
        self.patches.replace(inner.profile, "_prepare_trace", self._make_prepare)
        self.patches.replace(inner.profile, "_start_trace", nothing)
        self.patches.replace(inner.profile, "__exit__", self._make_exit)

    def _make_prepare(self, original: Callable[..., Any]) -> Callable[..., None]:
        def _prepare_trace(theirs: Any) -> None:
            self.used = theirs.entered = True

        return _prepare_trace

    def _make_exit(self, original: Callable[..., Any]) -> Callable[..., None]:
        from torch.autograd.profiler_util import EventList

        def __exit__(theirs: Any, *error: object) -> None:
            if theirs.enabled:
                theirs.kineto_results = NothingRecorded()
                theirs._function_events, theirs._needs_processing = EventList([]), False
                theirs._function_events._build_tree()

        return __exit__
