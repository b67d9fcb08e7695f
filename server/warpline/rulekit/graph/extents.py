"""What a step reads of its data, and whether a size is a layer's alone."""

from __future__ import annotations

from collections.abc import Callable

from warpline.rulekit.graph.graph import Graph, Node
from warpline.wire.dataflow import OPTIMIZER

#: Operators whose result need not have a size that their input has: products, reductions, losses, look-ups.
_ENDS = frozenset({
    "mm", "addmm", "bmm", "baddbmm", "mv", "addmv", "dot", "linear", "convolution", "embedding", "gather",
    "index_select", "multinomial", "topk", "sum", "mean", "prod", "max", "min", "amax", "amin", "argmax",
    "argmin", "logsumexp", "norm", "linalg_vector_norm", "var", "std", "any", "all", "equal", "is_nonzero",
    "nll_loss_forward", "nll_loss2d_forward", "l1_loss", "mse_loss", "binary_cross_entropy",
    "binary_cross_entropy_with_logits", "_local_scalar_dense",
})  # fmt: skip


def before_step(graph: Graph) -> set[int]:
    """The data of a step: values that it began with, and that are no parameter nor as large as one (which an
    optimizer's state is), nor a single number."""
    shapes = {graph.shape(value) for value in graph.parameters}
    read = {value for node in graph.nodes for value in node.inputs}
    own = {value for value in read if value not in graph.producer} - graph.parameters
    return {value for value in own if graph.size(value) > 1 and graph.shape(value) not in shapes}


def tied(graph: Graph, size: int, even: Callable[[Node], bool] = lambda _: False) -> str:
    """Why a layer's size cannot be changed alone: what else must have it. "" where only parameters bring it
    into the step, and no operator divides it but those that are ``even``."""
    shapes = {graph.shape(value) for value in graph.parameters if size in graph.shape(value)}
    if not shapes:
        return "no parameter of the recorded step has this size"
    for node in graph.nodes:
        site = graph.site(node)
        # An optimizer's operators, and those on lists, take each parameter with what is as large.
        if node.name.startswith(("_foreach", "_fused")) or (site is not None and site.via == OPTIMIZER):
            continue
        if even(node):
            continue
        if reason := _reason(graph, node, size, shapes):
            return reason + (f" (line {site.line})" if site is not None else "")
    return ""


def _reason(graph: Graph, node: Node, size: int, shapes: set[tuple[int, ...]]) -> str:
    read = [value for value in node.inputs if size in graph.shape(value)]
    made = [value for value in node.outputs if size in graph.shape(value)]
    if made and not read:
        return f"`{node.name}` makes a tensor of this size, which is no layer's"
    # A gradient, an average and a norm's statistics are as large as a parameter, and so is all they meet.
    alike = {graph.shape(value) for value in read} <= shapes and len({*map(graph.shape, read)}) == 1
    data = [value for value in read if value not in graph.producer and value not in graph.parameters]
    if data and not alike and "batch_norm" not in node.name:
        return "data from outside the model has this size as well"
    groups = node.argument(8, "groups", 1) if node.name == "convolution" else 1
    if read and ("group_norm" in node.name or groups != 1):
        return f"`{node.name}` divides it into groups"
    if read and node.outputs and not made and node.name not in _ENDS:
        return f"`{node.name}` divides it, or joins it with another"
    return ""
