"""Products with unused rows: a head over a vocabulary where the loss uses few positions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from warpline.rulekit.graph.graph import COMPILED_CALL, MOVED, PIECE, PIECES, SAME, Graph, Node, Ref
from warpline.rulekit.graph.pointwise import POINTWISE

#: A product of one batch is what einsum makes of one with a weight.
_PRODUCTS = frozenset({"mm", "addmm", "linear", "matmul", "bmm"})
#: What takes some rows of a tensor. With tensors of places, the places are known where they are taken.
_BY_PLACES = frozenset({"index", "gather", "index_select", "masked_select", "take_along_dim"})
#: What makes of each row its own result.
_ROW_BY_ROW = POINTWISE | {
    "_log_softmax", "log_softmax", "_softmax", "softmax", "argmax", "amax", "max", "logsumexp", "sum", "topk",
}  # fmt: skip
LOSSES = frozenset({"nll_loss_forward", "nll_loss2d_forward"})
_FAR = 24


@dataclass(frozen=True, slots=True, eq=False)
class PartlyUsed:
    """``used`` of the ``rows`` of a product; ``nodes``: all that computes on the whole of them; ``taken``:
    what takes rows out at places that are known only there."""

    product: Node
    rows: int
    columns: int
    used: int
    nodes: tuple[Node, ...]
    taken: Node | None


def partly_used(graph: Graph, most: float) -> Iterator[PartlyUsed]:
    """Products with a parameter, with at most the share ``most`` of their rows used in the step."""
    losses = frozenset(node.site for node in graph.nodes if node.name in LOSSES)
    for node in graph.nodes:
        if node.name not in _PRODUCTS or not node.outputs or graph.site(node) is None:
            continue
        shape = graph.shape(node.outputs[0])
        held = any(graph.origin(value, MOVED) in graph.parameters for value in node.inputs)
        if not held or len(shape) < 2 or not math.prod(shape):
            continue
        rows = math.prod(shape[:-1])
        uses = _Uses(graph, shape[-1], losses)
        used = uses.of(node.outputs[0], rows, _FAR)
        if 0 < used <= most * rows:
            yield PartlyUsed(node, rows, shape[-1], used, (node, *uses.nodes), uses.taken)


def is_alone(graph: Graph, product: Node) -> bool:
    """Whether the call of the user's that runs ``product`` is a linear layer: it runs nothing else."""
    own = next(graph.running(product), None)
    if own is None:
        return False
    others = (node for node in graph.nodes if node is not product and own in graph.running(node))
    return all(node.name in SAME | MOVED | {"add"} for node in others)


class _Uses:
    def __init__(self, graph: Graph, columns: int, losses: frozenset[int]) -> None:
        self.graph = graph
        self.columns = columns
        self.nodes: dict[Node, None] = {}
        self.taken: Node | None = None
        self._waiting: set[int] = set()
        self._counted: set[Node] = set()
        self._losses = losses
        self.unscored = {one.value: one for one in graph.flow.unscored}

    def of(self, value: int, rows: int, far: int) -> int:
        """Rows of ``value`` that something uses, ``rows`` where that is not known."""
        if value in self._waiting:  # a view back to the layout of before is the same value
            return 0
        self._waiting.add(value)
        used = min(rows, self._of(value, rows, far))
        self._waiting.discard(value)
        return used

    def _of(self, value: int, rows: int, far: int) -> int:
        readers = self.graph.consumers.get(value, ())
        used = 0
        for node in readers:
            if value in node.outputs and node.name != COMPILED_CALL:  # autograd's own note of it
                continue
            # A loss that smooths its labels adds a part with a mask of its own, below the same call.
            if node.site in self._losses and node.name in ("sum", "neg"):
                continue
            used += self._by(node, value, rows, far)
        return used

    def _by(self, node: Node, value: int, rows: int, far: int) -> int:
        if node in self._counted:  # what comes of the rows meets again
            return 0
        self._counted.add(node)
        if not far or not node.outputs or node.named.get("device") is not None:
            return rows
        if node.name in LOSSES:
            return self._scored(node, rows)
        size, result = self.graph.size(node.outputs[0]), node.outputs[0]
        if node.name in _BY_PLACES | PIECE and size != self.graph.size(value):
            return self._taken(node, value, rows, far)
        if node.name in SAME | MOVED | PIECE | _BY_PLACES and size == self.graph.size(value):
            return self.of(result, rows, far - 1)
        if node.name in _ROW_BY_ROW and size % rows == 0 and self._keeps_rows(node, value, rows):
            masked = [self.unscored[one] for one in node.inputs if one in self.unscored and one != value]
            if masked and size == rows:
                left_out = min(masked[0].unscored, rows)
                return left_out if self._takes_the_unmasked(node, value) else rows - left_out
            if all(one == value or self._is_small(one, rows) for one in node.inputs):
                self.nodes[node] = None
                return self.of(result, rows, far - 1)
        if node.name in PIECES:
            return self._parted(node, value, rows, far)
        return rows

    def _is_small(self, value: int, rows: int) -> bool:
        """Whether it has at most a number for each row, or is a bias with one for each column. What has all
        of both may be another layer's result, as where a block adds to its input: that needs all rows."""
        return self.graph.size(value) <= rows or self.graph.shape(value) == (self.columns,)

    def _takes_the_unmasked(self, node: Node, value: int) -> bool:
        """Whether ``value`` stays where a mask is false."""
        at = {"where": 2, "masked_fill": 0}.get(node.name)
        return at is not None and node.arguments[at] == Ref(value)

    def _parted(self, node: Node, value: int, rows: int, far: int) -> int:
        """The rows that something uses of what takes a tensor apart into pieces of whole rows."""
        along, shape = self.graph.along(node), self.graph.shape(value)
        if along in (None, len(shape) - 1) or shape[-1] != self.columns:
            return rows
        self.nodes[node] = None
        read = [one for one in node.outputs if self.graph.consumers.get(one)]
        sizes = [self.graph.size(one) // self.columns for one in read]
        return sum(self.of(one, size, far - 1) or size for one, size in zip(read, sizes, strict=True))

    def _keeps_rows(self, node: Node, value: int, rows: int) -> bool:
        """Whether the result has the sizes of ``value``, or those but for its columns."""
        before, after = list(self.graph.shape(value)), list(self.graph.shape(node.outputs[0]))
        if before == after:
            return True
        if self.columns not in before:
            return False
        at = len(before) - 1 if before[-1] == self.columns else before.index(self.columns)
        rest = before[:at] + before[at + 1 :]
        return math.prod(rest) == rows and (after == rest or after[:at] + after[at + 1 :] == rest)

    def _taken(self, node: Node, value: int, rows: int, far: int) -> int:
        shape, size = self.graph.shape(node.outputs[0]), self.graph.size(node.outputs[0])
        whole = self.columns in shape and self.columns in self.graph.shape(value)
        left = size // self.columns if whole else size
        if left >= rows:
            if not whole and size == rows:  # the column of each row's class
                self.nodes[node] = None
                return self.of(node.outputs[0], rows, far - 1)
            return rows
        if node.name in _BY_PLACES:
            self.taken = node
        self.nodes[node] = None
        return min(left, self.of(node.outputs[0], left, far - 1)) or left

    def _scored(self, node: Node, rows: int) -> int:
        targets = self.unscored.get(node.inputs[1]) if len(node.inputs) > 1 else None
        self.nodes[node] = None
        left = rows
        if targets is not None and targets.entries == rows:
            left -= targets.unscored
        result = node.outputs[0]
        if self.graph.size(result) != rows or rows == 1:
            return left
        # One loss for each row may be masked later.
        return min(left, self.of(result, rows, _FAR) or left)
