"""Plans the runs of a script until one has measured it: the purpose of each, and what to do after it."""

from __future__ import annotations

from dataclasses import replace

from warpline.capture import looking
from warpline.capture.again import LEAST_BOUNDARIES, RUNS, next_try, usable
from warpline.capture.outcome import Outcome
from warpline.model.problem import Problem
from warpline.wire.control import Purpose, Windows
from warpline.wire.messages import Looked
from warpline.wire.run import Request


class Tries:
    """``request``, ``purpose``, ``windows`` and ``told`` (notes) describe the next run."""

    def __init__(self, request: Request, sampler: str) -> None:
        """``sampler``: ``Windows.sampler``."""
        self.request = request
        self.purpose = Purpose.PROFILE
        self.usual = Windows(request.warmup, captured=max(1, request.steps), sampler=sampler)
        self.may_look = looking.may_look(request)
        self.windows = replace(self.usual, may_look=self.may_look and request.loop is None)
        self.notes: tuple[str, ...] = ()
        self.loop_notes: tuple[str, ...] = ()
        #: Purpose, windows and notes of the next run if no loop is found
        self.otherwise: tuple[Purpose, Windows, tuple[str, ...]] = (self.purpose, self.usual, ())
        self.unseen: tuple[str, ...] = ()  # why the loops could not be looked at
        self.unrecorded: tuple[str, ...] = ()  # why operators are not recorded
        self.count = 0  # runs so far, without those that only looked at loops

    @property
    def told(self) -> tuple[str, ...]:
        """All notes about the runs for the report."""
        return (*self.loop_notes, *self.unrecorded, *self.notes)

    @property
    def over(self) -> bool:
        """Whether the script has run ``RUNS`` times."""
        return self.count >= RUNS

    def failed(self, outcome: Outcome) -> bool:
        """Whether to give up after a run that measured nothing: the script itself failed."""
        if self.purpose is Purpose.LOOPS or outcome.clean or self._failed_by_recording(outcome):
            return False
        return self.count > 0 or usable(outcome) < LEAST_BOUNDARIES

    def forgives(self, problem: Problem) -> bool:
        """Whether ``problem`` can be ignored: only the search for loops failed. Then a note says so."""
        if self.purpose is not Purpose.LOOPS or problem.status != 1:
            return False
        self.unseen = (f"the script's loops were not searched for steps: {problem}",)
        return True

    def go_on(self, outcome: Outcome) -> str:
        """Plan the next run after one that measured nothing; returns a message for the user."""
        if self.purpose is Purpose.LOOPS:
            self._looked(outcome.looked or Looked())
            return self.told[0] if self.told else ""
        if self._failed_by_recording(outcome):
            self.usual, self.windows = (replace(one, operators=False) for one in (self.usual, self.windows))
            self.unrecorded = (
                f"the script {outcome.how} in the step in which its operators were recorded: "
                "it was run again without that",
            )
            return self.unrecorded[0]
        if (outcome.last.nested or outcome.last.unmarked) and self.may_look:
            self.windows = self.usual
            return self._look(replace(self.usual, loops=outcome.last.nested, muted=True))
        self.count += 1
        if self.over:
            return ""
        self.purpose, windows, self.notes = next_try(self.request, outcome, self.count)
        self.windows = replace(windows, sampler=self.usual.sampler, operators=self.usual.operators)
        if self.purpose is Purpose.WHOLE and self.may_look and not outcome.elsewhere:
            self.request = replace(self.request, loop=None, loop_found=False)
            return self._look(replace(self.usual, whole_ns=(outcome.whole_ns,), muted=True))
        return self.notes[0]

    def _failed_by_recording(self, outcome: Outcome) -> bool:
        """Whether the script failed while its operators were recorded, which may be the cause."""
        return self.windows.operators and outcome.last.recording

    def _look(self, windows: Windows) -> str:
        self.otherwise = (self.purpose, self.windows, self.notes)
        self.may_look = False
        self.purpose, self.windows = Purpose.LOOPS, windows
        return looking.NOTE

    def _looked(self, looked: Looked) -> None:
        whole_ns = self.windows.whole_ns[0] if self.windows.whole_ns else 0
        self.purpose, self.windows, self.notes = self.otherwise
        self.notes = (*self.notes, *self.unseen)
        found = looking.chosen(self.request, looked, self.usual, whole_ns)
        if found is not None:
            self.purpose, self.notes = Purpose.PROFILE, ()
            self.request, self.windows, self.loop_notes = found
