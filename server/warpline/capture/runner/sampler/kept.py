"""Keeps the samples until the run is written: only then is all of the user's code known."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import CodeType

    from ..lines.userfiles import UserFiles
    from .frames import Frames
    from .pyspy import PySpy

#: Largest share of samples outside user lines, for a thread other than the main one. With more it is an
#: executor's thread that waits for work, and the work of other threads is not sampled.
MOST_OUTSIDE = 0.05
NOTE = "lines were not sampled (%s): times of lines of plain Python are estimates"


class KeptSamples:
    def __init__(self) -> None:
        self.sampler: Frames | PySpy | None = None
        self.why = ""  # why there are no samples, if sampling was tried

    def clear(self) -> None:
        """Forget the samples: another window begins."""
        self.sampler, self.why = None, ""

    def facts(self, user_files: UserFiles, codes: Sequence[CodeType]) -> dict[str, Any] | None:
        """``Samples``, as a dict. ``codes``: those of the user's that ran."""
        if self.sampler is None:
            return None
        try:
            found = self.sampler.found(user_files, codes)
        except OSError as error:
            self.why = str(error)
            return None
        outside = found["total"] - sum(count for _, _, count in found["lines"])
        alone = self.sampler.thread != os.getpid() and not self.sampler.all_threads
        if alone and outside > MOST_OUTSIDE * found["total"]:
            self.why = "the thread that makes the steps waits for others between them"
            return None
        return found

    def notes(self) -> list[str]:
        """A note with the reason if there are no samples, or with what was left out of them."""
        told = NOTE % self.why if self.why else self.sampler.note if self.sampler is not None else ""
        return [told] if told else []
