"""What the recorded step shows of a loop over tensors: whether its rounds can run operation by operation."""

from __future__ import annotations

import re
from dataclasses import dataclass

from warpline.rulekit.context import Context
from warpline.rulekit.graph import graph_around
from warpline.rulekit.graph.graph import Graph, Node, Ref
from warpline.rulekit.graph.storages import VIEWS, storages
from warpline.syntax.edits import Refused
from warpline.wire.dataflow import DIRECT

ADVICE = (
    "call `torch._foreach_lerp_`, `torch._foreach_mul_` and the like with lists of tensors, or use "
    "`AveragedModel`, `clip_grad_norm_` or one of torch's optimizers"
)
#: The name of an operation that adds a round's number to what the rounds before gave.
SUMMED = "add to the sum"
READ = "_local_scalar_dense"


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation of each round: its name in the record, and how many of its arguments are tensors."""

    name: str
    tensors: int
    alpha: bool
    lines: range


def check_rounds(context: Context, file: str, operations: list[Operation]) -> None:
    """Raises Refused unless the recorded step shows that the lines ran these operations in each round, with
    the same numbers, and that no round touches a tensor that another one changes."""
    graph = graph_around(context.profile.facts.dataflow)
    if graph is None:
        raise Refused("the operators of this step were not recorded, so tensors may be in its lists twice")
    lines = {line for one in operations for line in one.lines}
    ran = [node for node in graph.nodes if _at(graph, node, file) in lines]
    computed = [node for node in ran if node.name not in VIEWS]
    each = len(operations)
    if not each or not computed or len(computed) % each:
        raise Refused(ADVICE)
    numbers: dict[int, object] = {}
    kinds: set[tuple[tuple[int, ...] | None, str]] = set()
    for at, node in enumerate(computed):
        wanted = operations[at % each]
        if wanted.name in (READ, SUMMED):
            kinds |= {(graph.shape(value), graph.dtype(value)) for value in node.inputs}
        if wanted.name == SUMMED and node.name == "add" and _at(graph, node, file) in wanted.lines:
            continue
        tensors = sum(isinstance(one, Ref) for one in (*node.arguments, *node.named.values()))
        plain = [one for one in node.arguments if not isinstance(one, Ref)], node.named
        if wanted.name == "mul" and tensors == wanted.tensors + 1:  # by a tensor with one number
            factors = [one for one in node.arguments if isinstance(one, Ref) and not graph.shape(one.value)]
            tensors, plain = tensors - len(factors), (factors, node.named)
        if (
            node.name != wanted.name
            or tensors != wanted.tensors
            or _at(graph, node, file) not in wanted.lines
        ):
            raise Refused(ADVICE)
        if numbers.setdefault(at % each, plain) != plain:
            raise Refused("a number differs from tensor to tensor")
    if len(kinds) > 1 or any(shape != () for shape, _ in kinds):
        raise Refused("what is read or added up is not known to be numbers of one type")
    # What else computes meanwhile, such as a generator that the loop runs over, would run before all of it.
    own, between = {node.index for node in ran}, range(computed[0].index, computed[-1].index)
    if any(
        node.index in between and node.index not in own and node.name not in VIEWS for node in graph.nodes
    ):
        raise Refused("something else is computed between its rounds")
    root = storages(graph)
    touched: dict[int, set[int]] = {}
    changed: set[int] = set()
    for at, node in enumerate(computed):
        if operations[at % each].name == SUMMED:
            continue
        for value in (*node.inputs, *node.outputs):
            touched.setdefault(root(value), set()).add(at // each)
        # What a round makes may be stored where the next one reads.
        changed.update(map(root, node.outputs))
    if any(len(touched[value]) > 1 for value in changed):
        raise Refused("a tensor is in its lists twice, or a round needs what another one changes")
    _fits(context, graph, [node for node in computed if not graph.is_in_place(node)])


def alike(context: Context, file: str, lines: range) -> bool:
    """Whether each recorded operation of these lines worked on floating numbers of one type and one size."""
    graph = graph_around(context.profile.facts.dataflow)
    if graph is None:
        return False
    for node in graph.nodes:
        if _at(graph, node, file) not in lines or node.name in VIEWS:
            continue
        kinds = {(graph.dtype(value), graph.shape(value)) for value in (*node.inputs, *node.outputs)}
        if len(kinds) != 1 or "float" not in kinds.pop()[0]:
            return False
    return True


def multiplies_numbers(context: Context, file: str, lines: range) -> bool:
    """Whether the recorded products of these lines are of float32, none by a tensor with one number."""
    graph = graph_around(context.profile.facts.dataflow)
    products = [node for node in graph.nodes if _at(graph, node, file) in lines] if graph is not None else []
    return graph is not None and all(
        graph.dtype(value) == "float32" and graph.shape(value)
        for node in products
        if node.name == "mul"
        for value in node.inputs
    )


def _fits(context: Context, graph: Graph, made: list[Node]) -> None:
    """Raises Refused where the device has no room for the tensors that were one by one's before."""
    memory = context.profile.facts.memory
    more = sum(graph.size(value) * _bytes(graph.dtype(value)) for node in made for value in node.outputs)
    if memory.total_bytes and (memory.peak_bytes or 0) + more > memory.total_bytes:
        raise Refused("the device has no room for what it computes of all tensors at once")


def _bytes(dtype: str) -> int:
    """The bytes of one entry: 4 for ``float32``."""
    return int(re.sub(r"\D", "", dtype) or 8) // 8


def _at(graph: Graph, node: Node, file: str) -> int:
    """The line of the file that calls the operator itself; 0 for another file, or a function of a library."""
    site = graph.site(node)
    return site.line if site is not None and site.file == file and site.via == DIRECT else 0
