"""Source lines by number. Number 0 is no line: unattributed time is summed there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from warpline.trace.columns import Ints
from warpline.wire.cudagraphs import CapturedGraph
from warpline.wire.run import CompiledKernel, Locations

#: Functions that Python makes from an expression; their lines belong to the function around them.
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
        """The number of a line; 0 if no event was recorded there."""
        wanted = (file, line)
        return next((at for at in range(1, len(self)) if (self.file[at], self.line[at]) == wanted), 0)


def line_table(locations: Locations, compiled: Sequence[CompiledKernel | CapturedGraph] = ()) -> LineTable:
    """One row for each (file, line), even if several functions share it.

    Lines of ``compiled`` code and of captured graphs have rows too, although they may not run in the window.
    """
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
    places = [(locations.files[file] if file >= 0 else "", line) for file, line in numbers]
    known = set(places)
    qualified = {
        (locations.files[file], locations.functions[function].rpartition(".")[2]): locations.functions[
            function
        ]
        for file, _, function in locations.locations
        if 0 <= file < len(locations.files) and 0 <= function < len(locations.functions)
    }
    for place, name in {(file, line): name for one in compiled for file, line, name in one.lines}.items():
        if place not in known:
            places.append(place)
            functions.append(qualified.get((place[0], name), name))
    files, lines = zip(*places, strict=True)
    return LineTable(files, lines, tuple(functions), np.array(of_location or [0], np.int64))
