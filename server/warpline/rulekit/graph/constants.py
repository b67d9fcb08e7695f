"""Operators of a step that depend only on constants: numbers, buffers, and results of these."""

from __future__ import annotations

import math
from collections.abc import Callable

from warpline.rulekit.graph.graph import Graph, Node
from warpline.rulekit.graph.storages import VIEWS, storages

#: Operators that fill a new tensor, whatever tensor they take their size from.
_FILLS = frozenset({
    "arange", "linspace", "logspace", "zeros", "ones", "full", "eye", "empty", "scalar_tensor",
    "tril_indices", "triu_indices", "hann_window", "hamming_window", "blackman_window", "bartlett_window",
    "kaiser_window", "zeros_like", "ones_like", "full_like", "empty_like", "new_zeros", "new_ones",
    "new_full", "new_empty", "empty_strided", "new_empty_strided", "empty_permuted", "fft_fftfreq",
    "fft_rfftfreq", "vander",
})  # fmt: skip
#: What draws random numbers.
RANDOM = frozenset({
    "rand", "randn", "randint", "randperm", "rand_like", "randn_like", "randint_like", "normal", "uniform",
    "bernoulli", "multinomial", "exponential", "random", "dropout", "native_dropout", "poisson", "cauchy",
    "geometric", "log_normal", "rrelu", "normal_functional", "_fused_dropout", "binomial", "_standard_gamma",
    "_sample_dirichlet", "rrelu_with_noise",
})  # fmt: skip
#: Operators whose result holds data from elsewhere: a batch of a loader's worker is an empty tensor that is
#: set to shared memory, and compiled code has tensors of its own.
_FROM_OUTSIDE = frozenset({"set", "from_file", "compiled", "written"})
#: Where their first number is another one than 0 or 1, it may be the step's: a position, a time.
_COUNTED = frozenset({"arange", "linspace"})
#: The place of the value that these fill with.
_VALUE = {"full": 1, "full_like": 1, "new_full": 2, "scalar_tensor": 0, "fill": 1}
#: Masks are filled with numbers of at least this size; steps, times and temperatures are smaller.
_OF_MASKS = 1e4
#: What gives no tensor back, and writes to none.
READS = frozenset({"is_coalesced", "_local_scalar_dense", "equal", "is_same_size"})


def constant_nodes(graph: Graph) -> list[Node]:
    """The operators with the same result in each step, as far as one step shows; views are left out."""
    constant = constant_values(graph)
    return [
        node
        for node in graph.nodes
        if node.name not in VIEWS
        and node.outputs
        and constant.issuperset(node.outputs)
        # Of one number is what `backward` starts with, too.
        and any(graph.size(value) > 1 for value in node.outputs)
    ]


def constant_values(graph: Graph) -> set[int]:
    """The values that are the same in each step.

    Numbers among their arguments may be others in the next step: those that look like a position, a time or a
    temperature, or that differ from call to call in one step, are taken to be. A tensor that something else
    is written into later is not a constant.
    """
    own = storages(graph)
    # Memory that a step's own data is written into. What gives no result writes into what it is given, as
    # `_foreach_add_` and many operators of extensions do.
    writing = (node for node in graph.nodes if not node.outputs and node.name not in READS)
    changing = {own(value) for node in writing for value in node.inputs}
    counted = _counted(graph)
    while True:
        constant = _constant(graph, own, changing, counted)
        more = {
            own(value)
            for node in graph.nodes
            for value in node.outputs
            if value not in constant and own(value) not in changing
        }
        # What shares memory is constant as a whole, or not at all.
        mixed = more & set(map(own, constant))
        if not mixed:
            return constant
        changing |= mixed


def _constant(
    graph: Graph, own: Callable[[int], int], changing: set[int], counted: set[tuple[int, str]]
) -> set[int]:
    constant = {value for value in graph.flow.buffers if own(value) not in changing}
    again = frozenset(graph.flow.again)
    for node in graph.nodes:
        seen = node.index in again and not graph.parameters.intersection(map(graph.origin, node.outputs))
        if seen or ((node.site, node.name) not in counted and _is_constant(node, constant)):
            constant.update(value for value in node.outputs if own(value) not in changing)
    return constant


def _counted(graph: Graph) -> set[tuple[int, str]]:
    """Calls, by site and name, that get other numbers each time in one step, as a sample's index is one."""
    numbers: dict[tuple[int, str], set[tuple[object, ...]]] = {}
    for node in graph.nodes:
        if node.name not in VIEWS:
            given = tuple(one for one in node.arguments if type(one) in (int, float))
            numbers.setdefault((node.site, node.name), set()).add(given)
    return {key for key, seen in numbers.items() if len(seen) > 1 and key[0] >= 0}


def _is_constant(node: Node, constant: set[int]) -> bool:
    if node.name in RANDOM or node.name in _FROM_OUTSIDE or not _is_fixed(node):
        return False
    if node.name in _FILLS:
        return True
    inputs = node.inputs
    return bool(inputs) and all(value in constant for value in inputs)


def _is_fixed(node: Node) -> bool:
    """Whether the numbers that a tensor is filled with do not look like the step's own."""
    if node.name in _COUNTED and len([one for one in node.arguments if type(one) in (int, float)]) > 1:
        first = node.arguments[0]
        return first in (0, 1) or node.name == "linspace"
    if node.name not in _VALUE:
        return True
    value = node.argument(_VALUE[node.name], "fill_value", 0)
    return not isinstance(value, (int, float)) or value in (-1, 0, 1) or not abs(value) < _OF_MASKS


def traffic(graph: Graph, node: Node) -> int:
    """Elements that an operator reads and writes."""
    values = {*node.inputs, *node.outputs}
    return sum(math.prod(graph.shape(value)) for value in values)
