"""A loop of the user's code whose turns count as steps, and what was seen of a script's loops."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Loop:
    """A ``for``, a ``while`` or a comprehension.

    ``function`` and ``header`` find it again in an edited source, where its line has moved; with an empty
    header the line alone does.
    """

    file: str = ""  # absolute path
    line: int = 0
    function: str = ""  # qualified name without "<locals>"; "" at the level of the module
    header: str = ""  # "for x in xs", as ast.unparse writes it
    nth: int = 0  # of those with this header in this function

    @property
    def place(self) -> str:
        """The loop's place as people write it: ``sim.py:12``."""
        return f"{self.file.rpartition('/')[2]}:{self.line}"


@dataclass(frozen=True)
class Turning:
    """How a loop turned while it was watched."""

    loop: Loop
    turns: int
    turn_ns: int  # the median
    total_ns: int
    alike: bool = True  # most turns took about as much processor time as the median
