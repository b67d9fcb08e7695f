"""An error that is shown to the user as one line instead of a traceback."""

from __future__ import annotations


class Problem(Exception):
    """An error that the user can act on. ``str()`` is the one line that is shown.

    ``status`` is the exit status of the contract: 1 when the script ended before a step could be
    measured, 2 when the command line or the input is wrong, 130 when the user interrupted.
    """

    def __init__(self, message: str, status: int = 2) -> None:
        super().__init__(message)
        self.status = status
