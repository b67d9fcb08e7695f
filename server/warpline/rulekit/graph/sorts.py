"""Sorts whose results are read at one end only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from warpline.rulekit.graph.graph import Graph, Node
from warpline.wire.dataflow import DIRECT

SORTS = frozenset({"sort", "argsort", "msort"})
#: Share of the entries up to which a sort is reported: chosen, not fitted.
MOST_READ = 0.25


@dataclass(frozen=True, slots=True)
class PartlyRead:
    """``read`` of ``size`` entries along ``dim``; ``largest``: those, and not the smallest."""

    node: Node
    dim: int
    size: int
    read: int
    largest: bool


def partly_read(graph: Graph) -> Iterator[PartlyRead]:
    """Sorts by the user's own lines whose results are only sliced, at one end."""
    for node in graph.nodes:
        site = graph.site(node)
        if node.name not in SORTS or site is None or site.via != DIRECT or not node.outputs:
            continue
        shape = graph.shape(node.outputs[0])
        plain = [one for one in node.arguments[1:] if isinstance(one, int)]
        numbers = [one for one in plain if not isinstance(one, bool)]
        dim = node.named.get("dim", numbers[0] if numbers else 0 if node.name == "msort" else -1)
        flags = [one for one in plain if isinstance(one, bool)]
        descending = bool(node.named.get("descending", flags[-1] if flags else False))
        if not isinstance(dim, int) or not graph.size(node.outputs[0]) or not shape:
            continue
        dim %= len(shape)
        size = shape[dim]
        readers = [one for value in node.outputs for one in graph.consumers.get(value, ())]
        ends = [_end(reader, dim, size) for reader in readers]
        read = max((count for _, count in ends), default=0)
        if readers and 0 < read <= MOST_READ * size and len({at for at, _ in ends}) == 1:
            yield PartlyRead(node, dim, size, read, descending is (ends[0][0] == "start"))


def _end(reader: Node, dim: int, size: int) -> tuple[str, int]:
    """The end at which an operator reads, and how many entries from there; all where it is no such slice."""
    numbers = [one for one in reader.arguments[1:] if isinstance(one, int)]
    if reader.name == "select" and len(numbers) == 2 and numbers[0] == dim:
        at = numbers[1] % size
        return ("start", at + 1) if at < size / 2 else ("end", size - at)
    if reader.name == "narrow" and len(numbers) == 3 and numbers[0] == dim:
        numbers = [dim, numbers[1] % size, numbers[1] % size + numbers[2]]
    elif reader.name != "slice" or len(numbers) < 2 or numbers[0] != dim:
        return "all", size
    first = numbers[1] + size if numbers[1] < 0 else numbers[1]
    last = min(size, numbers[2]) if len(numbers) > 2 else size
    last = last + size if last < 0 else last
    return ("start", last) if last < size else ("end", size - first)
