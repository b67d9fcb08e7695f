"""All predictions for one run, from one simulation and the trials of replacements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from warpline.model.change import Change
from warpline.model.profile import Profile
from warpline.model.report import Predicted, Resource
from warpline.probing import Answers, compiling_s, informed, not_compiling, questions, undecided
from warpline.simulate.simulation import Simulation
from warpline.simulate.timeline import Places
from warpline.trace.columns import Trace
from warpline.wire.probing import Question


class Predictor:
    """``predictor(profile, change)`` is the predicted step with the change. ``profile``: attribution's result
    for the same trace. The trace is read and the simulation prepared at the first call; both are kept.
    """

    def __init__(self, read: Callable[[], tuple[Trace, Places]], answers: Answers | None = None) -> None:
        """``answers``: measured times of replacements that were tried on the recorded shapes."""
        self._read = read
        self._answers = answers or {}
        self._open: dict[Question, float] = {}
        self._simulation: Simulation | None = None

    def __call__(self, profile: Profile, change: Change) -> Predicted | None:
        """The gain of a change. None where the step cannot be replayed with it."""
        known, tried = informed(profile, change, self._answers)
        found = self._prepared(profile).predict(known)
        saved_ms = profile.steps.step_ms - found.step_ms if found is not None else 0.0
        for question in questions(profile, change):
            if question not in self._answers:
                self._open[question] = max(saved_ms, self._open.get(question, 0.0))
        return replace(found, basis="probed") if found is not None and tried else found

    @property
    def questions(self) -> tuple[Question, ...]:
        """The trials that would improve the predictions made so far; the largest possible saving first."""
        return tuple(sorted(self._open, key=lambda one: -self._open[one]))

    def compiling_s(self, profile: Profile, change: Change) -> float:
        """Seconds that a change compiles for, once; 0 where it compiles nothing that is known."""
        return compiling_s(profile, change, self._answers)

    def not_compiling(self, profile: Profile, change: Change) -> str:
        """Why nothing can be compiled where the script runs, if a trial of ``change`` said so; else ""."""
        return not_compiling(profile, change, self._answers)

    def undecided(self, profile: Profile, change: Change) -> bool:
        """Whether the trials of a change differ too much from round to round to say that it gains."""
        return undecided(profile, change, self._answers)

    def limit(self, profile: Profile, change: Change) -> Resource:
        """The resource that bounds the step with ``change``."""
        return self._prepared(profile).limit(informed(profile, change, self._answers)[0])

    def left(self, profile: Profile, made: Change, change: Change) -> float:
        """The share of the time at the lines of ``change`` that is left after the change ``made``."""
        known = informed(profile, made, self._answers)[0]
        return self._prepared(profile).left(known, change)

    def floor_ms(self, profile: Profile) -> float:
        """Lower bound of the step time in ms, for any fix."""
        return self._prepared(profile).floor_ms()

    def _prepared(self, profile: Profile) -> Simulation:
        if self._simulation is None:
            self._simulation = Simulation(*self._read(), profile)
        return self._simulation
