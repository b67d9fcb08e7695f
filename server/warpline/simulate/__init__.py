"""Replays the captured step with a change: the predicted gain of a fix.

``Simulation(trace, places).predict(change)`` returns the predicted step, or None if it cannot be predicted.
Replaying without a change gives the measured step.
"""

from __future__ import annotations

from warpline.simulate.predictor import Predictor
from warpline.simulate.simulation import Simulation
from warpline.simulate.timeline import Places

__all__ = ["Places", "Predictor", "Simulation"]
