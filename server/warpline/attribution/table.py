"""Source lines by number: 0 is "none", so that what could not be attributed has a place to be summed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from warpline.model.run import Locations
from warpline.trace.columns import Ints

#: Functions that Python makes of an expression; the line belongs to the function around them.
EXPRESSIONS = ("<lambda>", "<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")


@dataclass(frozen=True, slots=True)
class LineTable:
    """``file[i]``, ``line[i]``, ``function[i]`` of line number i; ``of_location`` maps into it."""

    file: tuple[str, ...]
    line: tuple[int, ...]
    function: tuple[str, ...]
    of_location: Ints

    def __len__(self) -> int:
        return len(self.file)

    def number(self, file: str, line: int) -> int:
        """The number of a line, 0 when no event was ever seen there."""
        wanted = (file, line)
        return next((at for at in range(1, len(self)) if (self.file[at], self.line[at]) == wanted), 0)


def line_table(locations: Locations) -> LineTable:
    """One row for each (file, line), however many functions share it."""
    numbers: dict[tuple[int, int], int] = {(-1, 0): 0}
    functions = [""]
    of_location = []
    for file, line, function in locations.locations:
        key = (file, line) if 0 <= file < len(locations.files) else (-1, 0)
        name = locations.functions[function] if 0 <= function < len(locations.functions) else ""
        at = numbers.setdefault(key, len(numbers))
        if at == len(functions):
            functions.append(name)
        elif at and functions[at].endswith(EXPRESSIONS) and not name.endswith(EXPRESSIONS):
            functions[at] = name
        of_location.append(at)
    files = tuple(locations.files[file] if file >= 0 else "" for file, _ in numbers)
    return LineTable(
        files, tuple(line for _, line in numbers), tuple(functions), np.array(of_location or [0], np.int64)
    )
