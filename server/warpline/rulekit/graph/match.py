"""A formula that was found in a graph, and what is common to looking for one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from warpline.rulekit.graph.graph import Graph, Node
from warpline.wire.dataflow import DIRECT, LIBRARY, OPTIMIZER

#: Layers of one class run the same lines: so many of them are looked at.
PER_SITE = 2
#: And so many instructions for each family of formulas: 400 take about a third of a second.
MOST_SITES = 400


@dataclass(frozen=True, slots=True, eq=False)
class Match:
    """``nodes``: the operators that one call would take the place of; ``result``: the last of them.

    ``call``: how that call is written; empty where torch has none, and ``reason`` says so. ``words``: options
    of the kind under which ``capture/runner/probing`` tries it.
    """

    kind: str
    call: str
    nodes: tuple[Node, ...]
    result: Node
    reason: str = ""
    words: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The call's name: "gelu", "gelu_tanh"."""
        name, _, options = self.call.removesuffix(")").partition("(")
        return name.rpartition(".")[2] + ("_tanh" if "tanh" in options else "")


def candidates(graph: Graph, names: frozenset[str]) -> Iterator[Node]:
    """Operators of these names that the user's own code calls, the last ones first."""
    seen: dict[tuple[int, str], int] = {}
    for node in reversed(graph.nodes):
        if node.name not in names or not node.outputs:
            continue
        site = graph.site(node)
        key = (node.site, node.name)
        if site is None or site.via != DIRECT or seen.get(key, 0) >= PER_SITE:
            continue
        if key not in seen and len(seen) >= MOST_SITES:
            return
        seen[key] = seen.get(key, 0) + 1
        yield node


def is_written_out(graph: Graph, nodes: Iterable[Node]) -> bool:
    """Whether several calls of the user's own code make ``nodes``, and not one call of a library's."""
    sites = {node.site: graph.site(node) for node in nodes}
    ways = {site.via for site in sites.values() if site is not None}
    return len(sites) > 1 and not ways & {LIBRARY, OPTIMIZER}


def largest(matches: Iterable[Match]) -> list[Match]:
    """The matches that are not part of another one."""
    found: list[Match] = []
    taken: set[Node] = set()
    for match in sorted(matches, key=lambda match: -len(match.nodes)):
        if not taken.intersection(match.nodes):
            found.append(match)
            taken.update(match.nodes)
    return sorted(found, key=lambda match: match.result.index)
