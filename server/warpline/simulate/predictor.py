"""Everything that is foreseen of one run, from one simulation of it."""

from __future__ import annotations

from collections.abc import Callable

from warpline.model.change import Change
from warpline.model.profile import Profile
from warpline.model.report import Predicted, Resource
from warpline.simulate.simulation import Simulation
from warpline.simulate.timeline import Places
from warpline.trace.columns import Trace


class Predictor:
    """``predictor(profile, change)`` is the step with the change made. The trace is read, and the simulation
    prepared, when the first question is asked; both are kept. ``profile`` is what attribution made of it.
    """

    def __init__(self, read: Callable[[], tuple[Trace, Places]]) -> None:
        self._read = read
        self._simulation: Simulation | None = None

    def __call__(self, profile: Profile, change: Change) -> Predicted | None:
        """None where the simulation cannot say."""
        return self._prepared(profile).predict(change)

    def limit(self, profile: Profile, change: Change) -> Resource:
        """What bounds the step with ``change`` made."""
        return self._prepared(profile).limit(change)

    def floor_ms(self, profile: Profile) -> float:
        """The step's length that no fix gets below."""
        return self._prepared(profile).floor_ms()

    def _prepared(self, profile: Profile) -> Simulation:
        if self._simulation is None:
            self._simulation = Simulation(*self._read(), profile)
        return self._simulation
