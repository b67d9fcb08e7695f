"""The graphs that Inductor compiled, and which recorded call is which call of their code.

A graph makes its calls in the order of its code: the n-th ``aten::mm`` of a run of it is the n-th one in
the list. Where the numbers of a name do not agree, nothing is guessed from the order: Inductor's own
kernels are then known by name, and anything else has the lines of the calls next to it. A call that was
made of no line of the user's, as in a model of torch's own modules, is the line's that runs the graph; torch
says nothing of such calls, and where it says nothing of a library's in a forward graph, that is why.
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

#: Ways of Inductor's to call an operator of another name.
_OTHER_NAMES = {"aten::bias_addmm": "aten::addmm"}
#: What calls an operator for the script. Inductor calls some for itself, by "aten." (random seeds).
_OPERATORS = ("extern_kernels.", "torch.ops.")
_LIBRARIES = (*_OPERATORS, "aten.", "aten::")
_OWN = ("triton_", "cpp_")
_NUMBER = re.compile(r"_\d+$")
#: Device work that belongs to a kernel of a library beside it.
_AIDS = re.compile(r"^Mem(set|cpy)|splitk", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Graph:
    region: str
    backward: bool
    #: Name as it is in the trace, and lines, None where torch does not say; in order.
    calls: tuple[tuple[str, Lines | None], ...]
    count: Counter[str]

    def agreeing(self, seen: Counter[str]) -> int:
        """How many of its calls were seen as often as they are listed."""
        return sum(number for name, number in self.count.items() if seen[name] == number)


@dataclass(frozen=True, slots=True)
class Graphs:
    all: tuple[Graph, ...]
    fused: dict[tuple[str, bool], Lines]  # (Inductor's own kernel, backward) -> all lines it was made of

    def lines(self, names: Sequence[str], region: str, backward: bool) -> list[Lines]:
        """Lines of the calls seen in one run of a graph, in order; empty where they are none of the
        user's, or nothing is known."""
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

        Inductor's own are found as above; what libraries launched between two of them belongs to the calls
        of libraries between these: to each its kernel if there are as many, else to all of them.
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
        """The lines of a fused kernel. One that ran in the other pass than its name says is found as well."""
        return self.fused.get((name, backward)) or self.fused.get((name, not backward))

    def _ran(self, names: Sequence[str], region: str, backward: bool) -> Graph | None:
        seen = Counter(names)
        return max(
            (graph for graph in self.all if graph.backward == backward and graph.agreeing(seen)),
            key=lambda graph: (graph.region == region, graph.agreeing(seen)),
            default=None,
        )


def _places(graph: Graph | None, names: Sequence[str]) -> list[int]:
    """The place of each call among those of the graph; -1 where the numbers in its name do not agree."""
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
            # An operator is its own line's; what it reads may come from others.
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
    """How the trace calls what Inductor's code calls ``name``: ``aten::mm`` for ``extern_kernels.mm`` or
    ``torch.ops.aten.mm.default``, and the user's own kernels without the number they get."""
    if not name.startswith(_LIBRARIES):
        return name if name.startswith(_OWN) else _NUMBER.sub("", name)
    space, _, rest = name.removeprefix("torch.ops.").replace("::", ".").partition(".")
    plain = f"{'aten' if space == 'extern_kernels' else space}::{rest.partition('.')[0]}"
    return _OTHER_NAMES.get(plain, plain)


def _beside(known: list[Lines | None]) -> list[Lines]:
    """``known``, with the lines of both neighbours that are known where nothing is."""
    before, after = _nearest(known), _nearest(known[::-1])[::-1]
    return [
        tuple(dict.fromkeys(before[at] + after[at])) if lines is None else lines
        for at, lines in enumerate(known)
    ]


def _nearest(known: list[Lines | None]) -> list[Lines]:
    """The lines at each place, or else those last known before it."""
    nearest: Lines = ()
    found = []
    for lines in known:
        nearest = nearest if lines is None else lines
        found.append(nearest)
    return found
