"""What a profiled block leaves: its run folder, its report, its tables."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warpline.capture.inprocess import InProcess
from warpline.inprocess.cells import placed, shell
from warpline.model.problem import Problem

if TYPE_CHECKING:
    from warpline.model.report import Report


class Run:
    """``with warpline.profile() as run:``"""

    def __init__(self) -> None:
        self.path: Path | None = (
            None  #: the run folder, once the block is over; None where nothing was measured
        )
        self.problem = ""  #: one line: why nothing was measured
        self._measured: InProcess | None = None

    def step(self) -> None:
        """A step of the block ends here.

        Not needed where steps end with an optimizer's step, a loader's batch or a model's forward, which are
        found. Does nothing where nothing is being measured.
        """
        if self._measured is not None:
            self._measured.mark()

    def report(self) -> Report:
        """The report, as ``warpline report`` reads it. Raises Problem where nothing was measured."""
        from warpline import pipeline

        return pipeline.report_of(self._folder())

    def show(self, top: int | None = None) -> None:
        """Print the table; in a notebook show it below the cell, with lines named by their cell.

        ``top``: how many lines, else those that matter. Raises Problem where nothing was measured.
        """
        from warpline import pipeline

        folder, report = self._folder(), self.report()
        profile = pipeline.profile_of(folder)
        if shell() is None:
            from warpline.terminal import report as terminal

            sys.stdout.flush()
            terminal.show(folder, report, profile, top=top)
            return
        from IPython.display import display

        from warpline.notebook.shown import shown

        show: Any = display
        show(shown(folder, report, profile, placed, top))

    def _folder(self) -> Path:
        if self.path is None:
            raise Problem(self.problem or "the profiled block is not over yet", 1)
        return self.path
