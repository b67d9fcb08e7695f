"""The graphs that Inductor compiled, and their calls in the trace.

A graph makes its calls in the order of its code: the n-th ``aten::mm`` of a run is the n-th one in the
graph's list. If the trace and the list have different numbers of calls of a name, the order is not used:
Inductor's own kernels are found by name, and other calls get the lines of the calls next to them.

A call that was compiled from no user line, as in a model of torch's own modules, belongs to the line that
runs the graph. torch records no lines for such calls. So a library call without lines in a forward graph is
taken to be one of them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from warpline.attribution.table import LineTable
from warpline.wire.run import CompiledKernel

Lines = tuple[int, ...]  # numbers in the LineTable

#: Names that Inductor uses for an operator -> the operator's name.
_OTHER_NAMES = {"aten::bias_addmm": "aten::addmm"}
#: Prefixes of operators that the script called. Inductor's own calls (random seeds) begin with "aten.".
_OPERATORS = ("extern_kernels.", "torch.ops.")
_LIBRARIES = (*_OPERATORS, "aten.", "aten::")
_OWN = ("triton_", "cpp_")
_NUMBER = re.compile(r"_\d+$")
#: Device work that belongs to the library kernel next to it.
_AIDS = re.compile(r"^Mem(set|cpy)|splitk", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Graph:
    region: str
    backward: bool
    #: In order: the name as in the trace, and the lines (None if torch recorded none).
    calls: tuple[tuple[str, Lines | None], ...]
    count: Counter[str]

    def agreeing(self, seen: Counter[str]) -> int:
        """Number of calls with a name that occurs as often in the trace as in the list."""
        return sum(number for name, number in self.count.items() if seen[name] == number)


@dataclass(frozen=True, slots=True)
class Graphs:
    all: tuple[Graph, ...]
    fused: dict[tuple[str, bool], Lines]  # (Inductor's own kernel, backward) -> all lines it was made of

    def lines(self, names: Sequence[str], region: str, backward: bool) -> list[Lines]:
        """Lines of the calls in one run of a graph, in order; () for calls without user lines or unknown
        ones."""
        found = self._ran(names, region, backward)
        known = [found.calls[call][1] if found and call >= 0 else None for call in _places(found, names)]
        return _beside(
            [
                self.by_name(name, backward) if lines is None else lines
                for name, lines in zip(names, known, strict=True)
            ]
        )

    def replayed(self, names: Sequence[str], region: str, backward: bool) -> list[Lines]:
        """Lines of the kernels that a CUDA graph replayed for one run of a graph, in order.

        Inductor's own kernels are found as in :meth:`lines`. Library kernels between two of them belong to
        the graph's library calls between the same two: one to one if the numbers agree, else each to all of
        them.
        """
        found = self._ran(names, region, backward)
        places = _places(found, names)
        known = [self.by_name(name, backward) for name in names]
        if found is None or max(places, default=-1) < 0:
            return [lines or () for lines in known]
        ends = [(-1, -1), *((at, call) for at, call in enumerate(places) if call >= 0)]
        for (begin, first), (end, last) in pairwise([*ends, (len(names), len(found.calls))]):
            if begin >= 0 and (own := found.calls[first][1]) is not None:
                known[begin] = own
            between = [
                lines for _, lines in found.calls[first + 1 : max(last, first + 1)] if lines is not None
            ]
            works = [at for at in range(begin + 1, end) if not _AIDS.search(names[at])]
            every = tuple(dict.fromkeys(line for lines in between for line in lines))
            for number, at in enumerate(works if between else ()):
                known[at] = between[number] if len(works) == len(between) else every
        return _beside(known)

    def by_name(self, name: str, backward: bool) -> Lines | None:
        """The lines of a fused kernel, of either pass if the given one has none of that name."""
        return self.fused.get((name, backward)) or self.fused.get((name, not backward))

    def _ran(self, names: Sequence[str], region: str, backward: bool) -> Graph | None:
        seen = Counter(names)
        return max(
            (graph for graph in self.all if graph.backward == backward and graph.agreeing(seen)),
            key=lambda graph: (graph.region == region, graph.agreeing(seen)),
            default=None,
        )


def _places(graph: Graph | None, names: Sequence[str]) -> list[int]:
    """The index of each call in the graph's list; -1 if trace and list differ in how often its name
    occurs."""
    seen = Counter(names)
    waiting: dict[str, list[int]] = {}
    for place, (name, _) in enumerate(graph.calls) if graph else ():
        waiting.setdefault(name, []).append(place)
    agreed = {name: iter(places) for name, places in waiting.items() if len(places) == seen[name]}
    return [next(agreed[name]) if name in agreed else -1 for name in names]


def graphs(kernels: Iterable[CompiledKernel], table: LineTable) -> Graphs:
    """The compiled graphs, from the kernels that torch described."""
    kernels = tuple(kernels)
    numbers = {place: at for at, place in enumerate(zip(table.file, table.line, strict=True))}
    torchs_own = {
        one.region
        for one in kernels
        if not one.traced and not one.backward and one.region and one.name.startswith(_OPERATORS)
    }
    named = {one.name for one in kernels if one.lines and not one.name.startswith(_LIBRARIES)}
    calls: dict[tuple[int, str, bool], list[tuple[str, Lines | None]]] = {}
    fused: dict[tuple[str, bool], dict[int, None]] = {}
    for kernel in kernels:
        library = kernel.name.startswith(_LIBRARIES)
        lines = tuple(
            dict.fromkeys(numbers[file, line] for file, line, _ in kernel.lines if (file, line) in numbers)
        )
        if not library and lines:
            fused.setdefault((kernel.name, kernel.backward), {}).update(dict.fromkeys(lines))
        if library or kernel.graph >= 0:
            key = (kernel.graph, kernel.region, kernel.backward)
            # An operator belongs to its own line, the first one; the other lines are those of its inputs.
            own: Lines | None = lines[:1] if library else lines
            if not kernel.traced:
                own = () if kernel.region in torchs_own and kernel.name not in named else None
            calls.setdefault(key, []).append((seen_as(kernel.name), own))
    every = tuple(
        Graph(region, backward, tuple(of), Counter(name for name, _ in of))
        for (_, region, backward), of in calls.items()
    )
    return Graphs(every, {key: tuple(lines) for key, lines in fused.items()})


def seen_as(name: str) -> str:
    """The trace's name for the call ``name`` of Inductor's code: ``aten::mm`` for ``extern_kernels.mm`` or
    ``torch.ops.aten.mm.default``, and the user's own kernels without Inductor's numeric suffix."""
    if not name.startswith(_LIBRARIES):
        return name if name.startswith(_OWN) else _NUMBER.sub("", name)
    space, _, rest = name.removeprefix("torch.ops.").replace("::", ".").partition(".")
    plain = f"{'aten' if space == 'extern_kernels' else space}::{rest.partition('.')[0]}"
    return _OTHER_NAMES.get(plain, plain)


def _beside(known: list[Lines | None]) -> list[Lines]:
    """``known``; unknown entries (None) get the lines of the nearest known entry on each side."""
    before, after = _nearest(known), _nearest(known[::-1])[::-1]
    return [
        tuple(dict.fromkeys(before[at] + after[at])) if lines is None else lines
        for at, lines in enumerate(known)
    ]


def _nearest(known: list[Lines | None]) -> list[Lines]:
    """The lines of each entry; those of the last known entry before it if unknown."""
    nearest: Lines = ()
    found = []
    for lines in known:
        nearest = nearest if lines is None else lines
        found.append(nearest)
    return found
