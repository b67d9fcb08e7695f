"""What a step computes of parameters that no optimizer has, and of nothing else that learns."""

from __future__ import annotations

from warpline.rulekit.graph.graph import Graph

_UNHELD, _OTHER = 1, 2


def of_unheld(graph: Graph) -> set[tuple[str, int]]:
    """Lines whose operators depend on such parameters (``Dataflow.unheld``) and on no other parameter.

    What a line computes without any parameter does not count.
    """
    unheld = frozenset(graph.flow.unheld)
    if not unheld or graph.flow.missing:
        return set()
    kinds: dict[int, int] = {
        value: _UNHELD if value in unheld else _OTHER for value in (*graph.parameters, *unheld)
    }
    lines: dict[tuple[str, int], int] = {}
    for node in graph.nodes:
        kind = 0
        for value in node.inputs:
            kind |= kinds.get(value, 0)
        for value in node.outputs:
            kinds[value] = kinds.get(value, 0) | kind
        site = graph.site(node)
        if site is not None and kind:
            place = (site.file, site.line)
            lines[place] = lines.get(place, 0) | kind
    return {place for place, kind in lines.items() if kind == _UNHELD}
