"""The graphs that Inductor compiled, as their code calls them, and which call is which of those seen.

A graph makes its calls in the order of its code: the n-th ``aten::mm`` of a run of it is the n-th one in
the list. Where the numbers of a name do not agree, nothing is guessed from the order: Inductor's own
kernels are then known by name, and anything else has the lines of the calls next to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from warpline.attribution.table import LineTable
from warpline.model.run import CompiledKernel

Lines = tuple[int, ...]  # numbers in the LineTable

#: Ways of Inductor's to call an operator of another name.
_OTHER_NAMES = {"aten::bias_addmm": "aten::addmm"}
_LIBRARIES = ("extern_kernels.", "torch.ops.", "aten.", "aten::")


@dataclass(frozen=True, slots=True)
class Graph:
    region: str
    backward: bool
    calls: tuple[tuple[str, Lines], ...]  # name as it stands in the trace, in order
    count: Counter[str]

    def agreeing(self, seen: Counter[str]) -> int:
        """How many of its calls were seen as often as they are listed."""
        return sum(number for name, number in self.count.items() if seen[name] == number)


@dataclass(frozen=True, slots=True)
class Graphs:
    all: tuple[Graph, ...]
    fused: dict[tuple[str, bool], Lines]  # (Inductor's own kernel, backward) -> all lines it was made of

    def lines(self, names: Sequence[str], region: str, backward: bool) -> list[Lines]:
        """Lines of the calls seen in one run of a graph, in order; empty where nothing is known of one."""
        seen = Counter(names)
        found = max(
            (graph for graph in self.all if graph.backward == backward),
            key=lambda graph: (graph.agreeing(seen) > 0, graph.region == region, graph.agreeing(seen)),
            default=None,
        )
        waiting: dict[str, list[Lines]] = {}
        for name, lines in found.calls if found else ():
            if found and found.count[name] == seen[name]:
                waiting.setdefault(name, []).append(lines)
        taken = {name: iter(lines) for name, lines in waiting.items()}
        known = [next(taken[name]) if name in taken else () for name in names]
        known = [lines or self.by_name(name, backward) for name, lines in zip(names, known, strict=True)]
        return _beside(known)

    def by_name(self, name: str, backward: bool) -> Lines:
        return self.fused.get((name, backward)) or self.fused.get((name, not backward), ())


def graphs(kernels: Iterable[CompiledKernel], table: LineTable) -> Graphs:
    numbers = {place: at for at, place in enumerate(zip(table.file, table.line, strict=True))}
    calls: dict[tuple[int, str, bool], list[tuple[str, Lines]]] = {}
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
            call = (operator(kernel.name), lines[:1]) if library else (kernel.name, lines)
            calls.setdefault(key, []).append(call)
    every = tuple(
        Graph(region, backward, tuple(of), Counter(name for name, _ in of))
        for (_, region, backward), of in calls.items()
    )
    return Graphs(every, {key: tuple(lines) for key, lines in fused.items()})


def operator(name: str) -> str:
    """``aten::mm`` of ``extern_kernels.mm``, ``torch.ops.aten.mm.default`` or ``aten.mm``."""
    space, _, rest = name.removeprefix("torch.ops.").replace("::", ".").partition(".")
    if space == "extern_kernels":
        space = "aten"
    plain = f"{space}::{rest.partition('.')[0]}"
    return _OTHER_NAMES.get(plain, plain)


def _beside(known: list[Lines]) -> list[Lines]:
    """``known``, with the lines of both neighbours that have some where there are none."""
    before, after = _nearest(known), _nearest(known[::-1])[::-1]
    return [lines or tuple(dict.fromkeys(before[at] + after[at])) for at, lines in enumerate(known)]


def _nearest(known: list[Lines]) -> list[Lines]:
    """For each place the lines last known there or before it."""
    nearest: Lines = ()
    found = []
    for lines in known:
        nearest = lines or nearest
        found.append(nearest)
    return found
