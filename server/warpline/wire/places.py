"""What stands at a line of a file."""

from __future__ import annotations


class Placed:
    """A base for dataclasses with the fields ``file`` and ``line``."""

    __slots__ = ()  # those of the subclasses are all there are
    file: str
    line: int

    @property
    def place(self) -> tuple[str, int]:
        """Both, as a key."""
        return self.file, self.line
