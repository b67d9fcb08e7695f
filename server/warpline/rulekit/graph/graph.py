"""The recorded operators as a graph."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from warpline.rulekit.graph.axes import Axes, Order, axes_of, order_of, regrouped, summed
from warpline.wire.dataflow import COMPILED, Dataflow, Frame, OperatorSite, running, value_of

#: Operators that return the numbers of their first argument in the same order.
SAME = frozenset({
    "view", "_unsafe_view", "reshape", "_reshape_alias", "unsqueeze", "squeeze", "expand", "expand_as",
    "clone", "contiguous", "_to_copy", "to", "alias", "detach", "lift_fresh", "lift_fresh_copy", "flatten",
    "unflatten", "view_as", "type_as", "positive",
})  # fmt: skip
#: Operators that return the same numbers in another order.
MOVED = frozenset({
    "transpose", "t", "permute", "movedim", "moveaxis", "swapaxes", "swapdims", "numpy_T", "mT",
})  # fmt: skip
#: What gives one piece of a tensor, and all of them at once.
PIECE = frozenset({"select", "slice", "narrow"})
PIECES = frozenset({"unbind", "split", "split_with_sizes", "chunk", "tensor_split"})
#: What the natural logarithm is multiplied by.
_LOGARITHMS = {"log2": 1 / math.log(2), "log10": 1 / math.log(10)}
#: The end of the name of a function that Python makes of a comprehension.
_COMPREHENSIONS = re.compile(r"(\.?(<locals>\.)?<(listcomp|setcomp|dictcomp|genexpr)>)+$")


@dataclass(frozen=True, slots=True)
class Ref:
    """A tensor among an operator's arguments."""

    value: int


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """A call of an operator. ``name`` is without overload and without the ``_`` of changes in place."""

    index: int
    name: str
    arguments: tuple[Any, ...]  # Ref, number, bool, None, text, or a tuple of these
    named: dict[str, Any]
    outputs: tuple[int, ...]
    site: int

    def argument(self, position: int, name: str, default: Any = None) -> Any:
        """An argument by position, else by name, else ``default``."""
        if position < len(self.arguments):
            return self.arguments[position]
        return self.named.get(name, default)

    @property
    def inputs(self) -> tuple[int, ...]:
        """Values of all arguments that are tensors."""
        return tuple(_refs((self.arguments, tuple(self.named.values()))))


class Graph:
    """``producer``: the operator that made a value, absent for what was there before the step.

    A product of rows, as ``einsum("bd,bd->b", x, y)`` is one, or of whole tensors, is two nodes: the ``mul``
    and the ``sum`` that it could be written as. So is a logarithm to another base than e. A permutation that
    only moves dimensions of size 1 is a ``view``, and a number that is made a tensor a ``scalar_tensor``.
    """

    def __init__(self, flow: Dataflow) -> None:
        self.flow = flow
        self.nodes: list[Node] = []
        self.producer: dict[int, Node] = {}
        self.consumers: dict[int, list[Node]] = {}
        self.parameters = frozenset(flow.parameters)
        self._at: dict[tuple[str, int], list[Node]] | None = None
        self._like: list[int] = []  # of values that no operator made by itself: one of the same shape
        for index, (name, site, given, outputs) in enumerate(
            zip(flow.name, flow.site, flow.arguments, flow.outputs, strict=True)
        ):
            self._add(index, flow.names[name], site, given, outputs)

    def _add(self, index: int, name: str, site: int, given: Any, outputs: tuple[int, ...]) -> None:
        arguments = list(given)
        named = arguments.pop() if arguments and isinstance(arguments[-1], dict) else {}
        node = Node(
            index,
            _short(name),
            tuple(_read(one) for one in arguments),
            {key: _read(one) for key, one in named.items()},
            tuple(outputs),
            site,
        )
        for one in self._in_usual_form(node):
            self.nodes.append(one)
            for value in dict.fromkeys(one.inputs):
                self.consumers.setdefault(value, []).append(one)
            for value in one.outputs:
                # What was read before was made before: a view that leads back to it makes it no second time.
                if value not in self.consumers:
                    self.producer.setdefault(value, one)

    def _in_usual_form(self, node: Node) -> list[Node]:
        inputs = node.inputs
        if node.name == "_to_copy" and not inputs and node.arguments:
            return [replace(node, name="scalar_tensor", named={})]  # vmap makes tensors of numbers
        if node.name == "_to_copy" and node.named.get("memory_format") and not node.named.get("device"):
            same = self.dtype(inputs[0]) == self.dtype(node.outputs[0])
            return [replace(node, name="clone") if same else node]
        if node.name in MOVED and len(inputs) == 1 and len(node.outputs) == 1:
            order, shape = self.order(node), self.shape(inputs[0])
            kept = [dim for dim in order or () if shape[dim : dim + 1] != (1,)]
            still = order is not None and kept == sorted(kept)
            return [replace(node, name="view")] if still else [node]
        if node.name in _LOGARITHMS and len(inputs) == 1 and len(node.outputs) == 1:
            natural = self.values
            self._like.append(node.outputs[0])
            return [
                replace(node, name="log", outputs=(natural,)),
                replace(node, name="mul", arguments=(Ref(natural), _LOGARITHMS[node.name])),
            ]
        if node.name not in ("bmm", "mm", "dot") or len(inputs) != 2 or len(node.outputs) != 1:
            return [node]
        (first, of_first), (second, of_second) = map(self._axes, inputs)
        dims = summed(of_first, of_second)
        if dims is None or self.shape(first) != self.shape(second):
            return [node]
        product = self.values
        self._like.append(first)
        return [
            replace(node, name="mul", arguments=(Ref(first), Ref(second)), named={}, outputs=(product,)),
            replace(node, name="sum", arguments=(Ref(product), dims), named={}),
        ]

    def _axes(self, value: int) -> tuple[int, Axes]:
        """The tensor that ``value`` is a view of, and its dimensions there."""
        chain: list[tuple[int, Node]] = []
        origin = value
        while (
            (node := self.producer.get(origin)) is not None
            and node.name in SAME | MOVED
            and node.arguments
            and isinstance(node.arguments[0], Ref)
        ):
            chain.append((origin, node))
            origin = node.arguments[0].value
        shape = self.shape(origin)
        axes: Axes | None = axes_of(shape)
        for after, node in reversed(chain):
            before, order = axes or (), self.order(node)
            if node.name not in MOVED:
                axes = regrouped(before, self.shape(after), lambda dim: shape[dim])
            else:
                axes = tuple(before[dim] for dim in order) if order is not None else None
            if axes is None:
                return value, axes_of(self.shape(value))
        return origin, axes or ()

    def order(self, node: Node) -> Order | None:
        """The order that an operator puts dimensions into; None for another operator."""
        given = (*node.arguments[1:], *(one for key, one in node.named.items() if key == "dims"))
        rank = len(self.shape(node.outputs[0])) if node.outputs else 0
        return order_of(node.name, given, rank) if node.name in MOVED else None

    def along(self, node: Node) -> int | None:
        """The dimension that one of ``PIECE`` or ``PIECES`` cuts."""
        dim = node.argument(1 if node.name in PIECE | {"unbind"} else 2, "dim", 0)
        rank = len(self.shape(node.inputs[0]))
        return dim % rank if isinstance(dim, int) and rank else None

    @property
    def values(self) -> int:
        """How many values there are: their numbers are below."""
        return len(self.flow.shape) + len(self._like)

    def _recorded(self, value: int) -> int:
        while value >= len(self.flow.shape):
            value = self._like[value - len(self.flow.shape)]
        return value

    def called(self, node: Node) -> str:
        """The name of the operator that was called, without overload and without ``_``."""
        return _short(self.flow.names[self.flow.name[node.index]])

    def shape(self, value: int) -> tuple[int, ...]:
        """The dimensions of a tensor, by its number."""
        return self.flow.shapes[self.flow.shape[self._recorded(value)]]

    def size(self, value: int) -> int:
        """How many elements a tensor has."""
        return math.prod(self.shape(value))

    def dtype(self, value: int) -> str:
        """A tensor's type as torch names it, such as ``float32``."""
        return self.flow.dtypes[self.flow.dtype[self._recorded(value)]]

    def is_in_place(self, node: Node) -> bool:
        """Whether the operator writes into its first argument: its full name is as ``aten.add_.Tensor``."""
        name = self.flow.names[self.flow.name[node.index]].split(".")
        return len(name) > 1 and name[1].endswith("_")

    def site(self, node: Node) -> OperatorSite | None:
        """Where the user called it; None where that is not known, or not in the text any more. What a
        comprehension calls, the function around it does: before Python 3.12 it is a function of its own."""
        found = self.flow.sites[node.site] if 0 <= node.site < len(self.flow.sites) else None
        if found is None or found.line <= 0:
            return None
        if not found.function.endswith(">"):
            return found
        return replace(found, function=_COMPREHENSIONS.sub("", found.function) or "<module>")

    def place(self, node: Node) -> tuple[str, int] | None:
        """The file and line of that."""
        site = self.site(node)
        return site.place if site is not None else None

    def caller(self, node: Node) -> tuple[str, int] | None:
        """The user's line that called the function in which the operator is."""
        frame = next(islice(self.frames(node), 1, None), None)
        return frame.place if frame is not None and frame.line > 0 else None

    def frames(self, node: Node) -> Iterator[Frame]:
        """The instructions of the user's that ran, the innermost first."""
        return map(self.flow.frames.__getitem__, self.running(node))

    def running(self, node: Node) -> Iterator[int]:
        """The same as indices of ``Dataflow.frames``."""
        known = node.index < len(self.flow.stack)
        return running(self.flow, self.flow.stack[node.index] if known else -1)

    def at(self, place: tuple[str, int]) -> list[Node]:
        """The operators of a file and line."""
        if self._at is None:
            self._at = {}
            for node in self.nodes:
                if (found := self.place(node)) is not None:
                    self._at.setdefault(found, []).append(node)
        return self._at.get(place, [])

    def origin(self, value: int, *more: frozenset[str]) -> int:
        """The value that ``value`` is a view or a cast of; ``more``: through these operators too."""
        through = SAME.union(*more)
        while (node := self.producer.get(value)) is not None and node.name in through and node.arguments:
            first = node.arguments[0]
            if not isinstance(first, Ref):
                break
            value = first.value
        return value

    def uses(self, value: int, *more: frozenset[str]) -> Iterator[tuple[Node, int]]:
        """Operators that read ``value``, or a view or cast of it, with the value they read."""
        return self.readers(value, SAME.union(*more))

    def readers(self, value: int, through: frozenset[str]) -> Iterator[tuple[Node, int]]:
        """Operators that read ``value``, or what those of the names ``through`` make of it, with the value
        they read."""
        waiting, seen = [value], {value}
        while waiting:
            current = waiting.pop()
            for node in self.consumers.get(current, ()):
                if node.name not in through:
                    yield node, current
                    continue
                fresh = [output for output in node.outputs if output not in seen]
                seen.update(fresh)
                waiting += fresh


def _short(name: str) -> str:
    short = name.split(".")[1] if "." in name else name
    return short.rstrip("_") or short


def _refs(value: Any) -> Iterator[int]:
    if isinstance(value, Ref):
        yield value.value
    elif isinstance(value, tuple):
        for one in value:
            yield from _refs(one)


def _read(value: Any) -> Any:
    if (number := value_of(value)) is not None:
        return Ref(number)
    if isinstance(value, str) and value in _NOT_FINITE:
        return float(value)
    return tuple(_read(one) for one in value) if isinstance(value, (list, tuple)) else value


_NOT_FINITE = ("inf", "-inf", "nan")
#: The name of a call of compiled code.
COMPILED_CALL = _short(COMPILED)
_LATEST: list[tuple[Dataflow, Graph]] = []


def whole_graph(flow: Dataflow) -> Graph | None:
    """The same; None where not all operators of the step were recorded: another one may do what is missed."""
    return graph_of(flow) if flow.name and not flow.missing else None


def graph_around(flow: Dataflow) -> Graph | None:
    """The same, also where compiled calls are single operators. Only the tensors that they are given and
    return are known: they may reach others, such as an attribute."""
    return graph_of(flow) if flow.name and (flow.around or not flow.missing) else None


def graph_of(flow: Dataflow) -> Graph:
    """The graph of a record; made once for all rules."""
    if not _LATEST or _LATEST[0][0] is not flow:
        _LATEST[:] = [(flow, Graph(flow))]
    return _LATEST[0][1]
