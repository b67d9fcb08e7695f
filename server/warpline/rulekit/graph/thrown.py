"""Operators that a backward pass visits for gradients that nothing reads before they are cleared."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from warpline.rulekit.graph.graph import MOVED, SAME, Graph, Node
from warpline.rulekit.graph.storages import storages
from warpline.wire.dataflow import Backward

_THROWN, _OTHER = 1, 2
_CUT = frozenset({"detach"})


@dataclass(frozen=True, slots=True, eq=False)
class Thrown:
    """A pass that makes such gradients. ``alone``: operators that it visits for them alone. ``beside``: those
    that it visits for others, too. ``visited``: all that it visits. ``parameters``: values of the parameters
    that get them."""

    backward: Backward
    alone: frozenset[Node]
    beside: frozenset[Node]
    visited: frozenset[Node]
    parameters: frozenset[int]

    @property
    def whole(self) -> frozenset[Node]:
        """What the call that is to blame may compute: where it is for no parameter, all that it visits."""
        return self.beside if self.backward.read else self.visited


class Visits:
    """What the passes of the recorded step visit. ``passes``: with what more is known than the record."""

    def __init__(self, graph: Graph, passes: tuple[Backward, ...] | None = None) -> None:
        self.graph, self.flow = graph, graph.flow
        self.passes = graph.flow.passes if passes is None else passes
        self._ungraphed = frozenset(self.flow.ungraphed)
        self._weights = self._of_parameters()

    @cached_property
    def found(self) -> list[Thrown]:
        """The passes that throw gradients away, of parameters that another pass trains.

        A pass that something else may visit the graph of after it, or that differentiates what only leads to
        such a parameter, is left out, as are parameters whose gradients the same call keeps at another time:
        their optimizer makes a step less often. A pass has to be for something: for parameters whose
        gradients are read, or for a tensor of the script's own that asks for one, as an attack's input does.
        """
        own = [one for one in self.passes if one.operator >= 0 and one.cleared]
        wanted = [one for one in own if one.read or self.leaves(one)]
        return [thrown for one in wanted if (thrown := self._thrown(one)) is not None]

    def leaves(self, one: Backward) -> set[int]:
        """The tensors of the script's own that a pass computes the gradients of."""
        read = {value for node in self.visited(one) for value in node.inputs}
        return read.intersection(self.flow.leaves)

    @cached_property
    def by_call(self) -> list[Thrown]:
        """The same as ``found``. The passes that one call makes, as in a loop, are put together."""
        calls: dict[int, list[Thrown]] = {}
        for one in self.found:
            calls.setdefault(one.backward.stack, []).append(one)
        return [
            Thrown(
                some[0].backward,
                frozenset().union(*(one.alone for one in some)),
                frozenset().union(*(one.beside for one in some)),
                frozenset().union(*(one.visited for one in some)),
                frozenset().union(*(one.parameters for one in some)),
            )
            for some in calls.values()
        ]

    @cached_property
    def alone(self) -> frozenset[Node]:
        """The operators of all of them that are visited for such gradients alone."""
        return frozenset(node for one in self.found for node in one.alone)

    def _thrown(self, one: Backward) -> Thrown | None:
        here = {value for other in self.passes if other.stack == one.stack for value in other.read}
        elsewhere = {value for other in self.passes if other.stack != one.stack for value in other.read}
        thrown = frozenset(one.cleared).intersection(elsewhere).difference(here)
        if not thrown or one.retained:
            return None
        others = {*one.read, *one.cleared, *one.left, *self.flow.leaves} - thrown
        kinds = self.kinds(dict.fromkeys(thrown, _THROWN) | dict.fromkeys(others, _OTHER))
        visited = self.visited(one)
        of_node = {node: self._kind(node, kinds) for node in visited}
        alone = {node for node, kind in of_node.items() if kind == _THROWN and not self._is_weight(node)}
        if any(not alone.isdisjoint(self._needed(other)) for other in self.passes if other is not one):
            return None
        asked = {value for other in self.passes if not (other.read or other.cleared or other.left)
                 for value in other.inputs}  # fmt: skip
        if any(kinds.get(value, 0) == _THROWN and value not in thrown for value in asked):
            return None
        beside = {node for node, kind in of_node.items() if kind == _THROWN | _OTHER}
        return Thrown(one, frozenset(alone), frozenset(beside), frozenset(visited), thrown)

    def _needed(self, one: Backward) -> set[Node]:
        """The operators that another pass visits for its own gradients."""
        if one.operator < 0:
            return set()
        own = {*one.read, *one.cleared, *one.left, *one.inputs, *self.flow.leaves}
        kinds = self.kinds(dict.fromkeys(own, _OTHER))
        return {node for node in self.visited(one) if self._kind(node, kinds)}

    def kinds(self, given: dict[int, int]) -> dict[int, int]:
        """Find for each value that gradients go through which of the ``given`` ones it depends on (their
        numbers put together)."""
        kinds = dict(given)
        for node in self.graph.nodes:
            kind = self._kind(node, kinds)
            for value in node.outputs if kind else ():
                kinds[value] = kinds.get(value, 0) | kind
        return kinds

    def _kind(self, node: Node, kinds: dict[int, int]) -> int:
        kind = 0
        for value in node.inputs if self._is_graphed(node) else ():
            kind |= kinds.get(value, 0)
        return kind

    def visited(self, one: Backward) -> set[Node]:
        """The operators that lead to what the pass starts from. A tensor that was detached, to ask for a
        gradient of its own, is what the detached one was: nothing before it is visited."""
        waiting, seen = list(one.roots), set[Node]()
        ends = frozenset(self.flow.leaves).difference(one.roots)
        while waiting:
            if (value := waiting.pop()) in ends:
                continue
            node = self.graph.producer.get(value)
            if node is not None and node not in seen and node.index < one.operator and self._is_graphed(node):
                seen.add(node)
                waiting += node.inputs
        return seen

    @cached_property
    def trained(self) -> dict[Node, int]:
        """The operators that gradients of any parameter, or of another tensor, go through."""
        given = {value: _OTHER for one in self.passes for value in (*one.read, *one.cleared, *one.left)}
        kinds = self.kinds(given | dict.fromkeys(self.flow.leaves, _OTHER))
        found = ((node, self._kind(node, kinds)) for node in self.graph.nodes)
        return {node: kind for node, kind in found if kind and not self._is_weight(node)}

    def under(self, frame: int) -> set[Node]:
        """The operators of ``trained`` that ran while this instruction did."""
        return self._under.get(frame, set())

    @cached_property
    def _under(self) -> dict[int, set[Node]]:
        found: dict[int, set[Node]] = {}
        for node in self.trained:
            for frame in set(self.graph.running(node)):
                found.setdefault(frame, set()).add(node)
        return found

    def only(self, nodes: frozenset[Node], one: Node, *, weighted: bool = False) -> int | None:
        """The outermost instruction around ``one`` that computes nothing of parameters but ``nodes``;
        ``weighted``: that reads no parameters but in ``nodes``, whatever else it computes."""
        for frame in reversed(list(self.graph.running(one))):
            inside = filter(self._reads_weight, self.under(frame)) if weighted else self.under(frame)
            if self.flow.frames[frame].line > 0 and nodes.issuperset(inside):
                return frame
        return None

    def reading(self, nodes: Iterable[Node], parameters: frozenset[int]) -> list[Node]:
        """Return the ``nodes`` that read one of ``parameters``, or a view or a cast of it, in their order."""
        own = set(parameters)
        for node in self.graph.nodes:
            if self._is_weight(node) and not own.isdisjoint(node.inputs):
                own.update(node.outputs)
        found = (node for node in nodes if not own.isdisjoint(node.inputs))
        return sorted(found, key=lambda node: node.index)

    @cached_property
    def shares_casts(self) -> bool:
        """Whether an operator that is trained reads a weight's cast that was made for ``alone``. Without a
        graph it would get it without one: autocast casts a weight once for its whole region. Each call makes
        its own views, which are one value of the record."""
        own = {value for node in self.alone for value in node.inputs if value in self._weights}
        storage = storages(self.graph)
        made = {value for value in own if storage(value) not in self.graph.parameters}
        return any(
            node in self.trained and node not in self.alone
            for value in made
            for node in self.graph.consumers.get(value, ())
        )

    def results(self, frame: int) -> set[int]:
        """Values that gradients go through, made while this instruction ran and read after it."""
        inside = self.under(frame)
        return {
            value
            for node in inside
            for value in node.outputs
            if any(one not in inside and one in self.trained for one in self.graph.consumers.get(value, ()))
        }

    def shares(self, nodes: Iterable[Node], *, weighted: bool = False) -> dict[tuple[str, int], float]:
        """The part of each line's ``trained`` operators that ``nodes`` are, by numbers read and written;
        ``weighted``: of those that read a parameter."""
        wanted, sizes = set(nodes), dict[tuple[str, int], list[float]]()
        for node in self.trained:
            if weighted and not self._reads_weight(node):
                continue
            place = self.graph.place(node)
            if place is not None:
                size = sum(map(self.graph.size, (*node.inputs, *node.outputs)))
                entry = sizes.setdefault(place, [0.0, 0.0])
                entry[0] += size if node in wanted else 0
                entry[1] += size
        return {place: own / whole for place, (own, whole) in sizes.items() if own}

    def _is_graphed(self, node: Node) -> bool:
        return node.index not in self._ungraphed and node.name not in _CUT

    def _of_parameters(self) -> set[int]:
        """Parameters, and views and casts of them."""
        found = set(self.graph.parameters)
        for node in self.graph.nodes:
            if node.name in SAME | MOVED and node.inputs and found.issuperset(node.inputs):
                found.update(node.outputs)
        return found

    def _reads_weight(self, node: Node) -> bool:
        return not self._weights.isdisjoint(node.inputs)

    def _is_weight(self, node: Node) -> bool:
        return bool(node.outputs) and self._weights.issuperset(node.outputs)
