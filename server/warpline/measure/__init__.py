"""Fixes tried on the user's script and timed: plain and changed in turn, in fresh processes.

The user's files are never written to: the changed text is laid over the original in the memory of
the process that is timed, so that a crash, a cancel or ``kill -9`` leaves the sources as they were.
"""

from __future__ import annotations

from warpline.measure.candidate import Candidate
from warpline.measure.contest import Outcome, measure

__all__ = ["Candidate", "Outcome", "measure"]
