"""What is done to a tensor between the call that creates it and the one that moves it to the device."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from warpline.rulekit.context import Context
from warpline.rulekit.graph import Graph, graph_around
from warpline.rulekit.graph.graph import Node
from warpline.rulekit.terms import descend
from warpline.syntax.edits import Refused
from warpline.syntax.source import NOT_LITERAL, Source

#: Methods whose result is the same, to the bit, on any device.
_EXACT = {
    "zero_", "fill_", "view", "reshape", "unsqueeze", "squeeze", "unsqueeze_", "squeeze_", "expand", "repeat",
    "permute", "transpose", "t", "flatten", "unflatten", "contiguous", "float", "half", "bfloat16", "double",
    "long", "int", "bool", "neg", "abs", "requires_grad_", "mul", "mul_", "add", "add_", "sub", "sub_",
    "clamp", "clamp_", "triu", "tril", "triu_", "tril_", "flip",
}  # fmt: skip
_RANDOM = {
    "normal_",
    "uniform_",
    "random_",
    "exponential_",
    "bernoulli_",
    "log_normal_",
    "cauchy_",
    "geometric_",
}
_ROUNDED = {
    "div",
    "div_",
    "sqrt",
    "exp",
    "log",
    "pow",
    "sin",
    "cos",
    "tanh",
    "sigmoid",
    "square",
    "bernoulli",
}
_MOVES = {"_to_copy", "to", "cuda"}


@dataclass(frozen=True, slots=True)
class Made:
    """``call`` creates it; ``exact``: what is done to it then gives the same on a device; ``pinned``: the
    calls in between that pin its memory."""

    call: cst.Call
    exact: bool
    pinned: tuple[cst.Call, ...]


def made_here(context: Context, source: Source, node: cst.BaseExpression) -> Made | None:
    """The call of a function of torch's that creates what ``node`` is, with nothing in between but numbers,
    and methods that work on a device; None where that is not so."""
    exact, pinned, others = True, [], []
    current: cst.CSTNode = node
    while True:
        if isinstance(current, cst.Call):
            called = current.func
            if source.name(called).startswith("torch.") and source.name(called).count(".") == 1:
                break
            if not isinstance(called, cst.Attribute):
                return None
            name = called.attr.value
            if name == "pin_memory" and not current.args:
                pinned.append(current)
            elif name not in _EXACT | _RANDOM | _ROUNDED or source.argument(current, "generator") is not None:
                return None
            exact = exact and name in _EXACT | {"pin_memory"} and source.argument(current, "alpha") is None
            others += [arg.value for arg in current.args]
            current = called.value
        elif isinstance(current, cst.BinaryOperation):
            left = _begins(source, current.left)
            others.append(current.right if left else current.left)
            exact = exact and isinstance(current.operator, (cst.Add, cst.Subtract, cst.Multiply))
            current = current.left if left else current.right
        elif isinstance(current, cst.Comparison) and len(current.comparisons) == 1:
            left = _begins(source, current.left)
            others.append(current.comparisons[0].comparator if left else current.left)
            current = current.left if left else current.comparisons[0].comparator
        else:
            return None
    if not all(_number(source, one) for one in others) and not _alone(context, source, current):
        return None
    return Made(current, exact, tuple(pinned))


def _begins(source: Source, node: cst.CSTNode) -> bool:
    calls: Iterator[cst.Call] = descend(node, cst.Call)
    return any(source.name(call.func).startswith("torch.") for call in calls)


def _number(source: Source, node: cst.BaseExpression) -> bool:
    """Whether it is made of literals, whatever runs."""
    value = source.literal(node)
    if value is not NOT_LITERAL:
        return not isinstance(value, str)
    return source.name(node) in ("math.pi", "torch.float32", "torch.float16", "torch.bfloat16")


def _alone(context: Context, source: Source, call: cst.Call) -> bool:
    """Whether the recorded step shows that the tensor meets no other one before it is moved: that one would
    have to be on the device, too."""
    graph = graph_around(context.profile.facts.dataflow)
    if graph is None:
        return False
    name = source.name(call.func).rpartition(".")[2]
    last = source.extent(source.statement(call) or call)[-1]
    lines = [(source.path, line) for line in range(source.line(call), last + 1)]
    begins = [node for node in graph.nodes if node.name == name and graph.place(node) in lines]
    return bool(begins) and all(_meets_none(graph, node) for node in begins)


def _meets_none(graph: Graph, begin: Node) -> bool:
    waiting, seen = list(begin.outputs), set(begin.outputs)
    while waiting:
        for node in graph.consumers.get(waiting.pop(), ()):
            if node.name in _MOVES:
                continue
            if graph.place(node) != graph.place(begin):
                return False
            if any(value not in seen and math.prod(graph.shape(value)) != 1 for value in node.inputs):
                return False
            fresh = [value for value in node.outputs if value not in seen]
            seen.update(fresh)
            waiting += fresh
    return True


def check_arguments(source: Source, made: cst.Call) -> None:
    """Raises Refused where the call takes what is on the host."""
    if source.argument(made, "device") is not None:
        raise Refused("it already names a device")
    if source.argument(made, "out") is not None or source.argument(made, "pin_memory") is not None:
        raise Refused("it is made in memory of the host: leave that out, and pass `device=`")
    if any(arg.star == "**" for arg in made.args):
        raise Refused("its device may be in the unpacked arguments")
