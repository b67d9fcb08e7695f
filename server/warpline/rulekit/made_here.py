"""What is done to a tensor between the call that creates it and the one that moves it to the device."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from warpline.rulekit.constants import related
from warpline.rulekit.context import Context
from warpline.rulekit.graph import Graph, graph_around
from warpline.rulekit.graph.graph import Node
from warpline.rulekit.terms import descend
from warpline.syntax.edits import Edits, Refused
from warpline.syntax.imports import imported_names
from warpline.syntax.source import NOT_LITERAL, Source, is_method, receiver

_BY_HAND = "its generator is the host's: make a `torch.Generator` of the device"
_SEEDS = ("manual_seed", "seed", "initial_seed")

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


def of_device(context: Context, edits: Edits, call: cst.Call, device: str) -> None:
    """Make the generator that ``call`` takes, if it takes one, on ``device`` (as code). Raises Refused where
    anything else may draw from it, or ``device`` may be another one where it is made."""
    source, given = edits.source, edits.source.argument(call, "generator")
    if given is None:
        return
    uses = _uses(context, source, given.value)
    bound = [one for one in uses if source.binds(one)]
    made = source.given(bound[0]) if len(bound) == 1 else None
    while is_method(made, "manual_seed"):
        made = receiver(made)
    others = [one for one in uses if one not in (*bound, given.value) and not _seeds(source, one)]
    plain = isinstance(made, cst.Call) and source.name(made.func) == "torch.Generator" and not made.args
    if others or not plain or not isinstance(made, cst.Call) or not _known(source, device, made, call):
        raise Refused(_BY_HAND)
    edits.set_argument(made, "device", device)


def _uses(context: Context, source: Source, node: cst.BaseExpression) -> list[cst.Name] | list[cst.Attribute]:
    """Where a function's own name, or an object's own attribute, is read or given. Raises Refused for others,
    and where other code may have it."""
    if isinstance(node, cst.Name):
        return source.uses(node.value, source.scope(node))
    owner = source.enclosing(node, cst.ClassDef)
    if not isinstance(node, cst.Attribute) or source.code(node.value) != "self" or owner is None:
        raise Refused(_BY_HAND)
    found: list[cst.Attribute] = []
    for other in context.sources():
        modules = imported_names(other.nodes(cst.Import), other.nodes(cst.ImportFrom))
        for one in other.nodes(cst.Attribute):
            if one.attr.value != node.attr.value or other.code(one).partition(".")[0] in modules:
                continue
            own = other.code(one.value) == "self"
            if own and not related(other.enclosing(one, cst.ClassDef), owner):
                continue
            if not own or other is not source:
                raise Refused(_BY_HAND)
            found.append(one)
    return found


def _seeds(source: Source, one: cst.CSTNode) -> bool:
    above = source.parent(one)
    return isinstance(above, cst.Attribute) and above.value is one and above.attr.value in _SEEDS


def _known(source: Source, device: str, made: cst.Call, used: cst.Call) -> bool:
    """Whether ``device``, as the function of ``used`` reads it, was given before ``made``, and only there."""
    function, own = source.enclosing(made, cst.FunctionDef), device.startswith("self.")
    if device[0] in "\"'":
        return True
    if not own and source.enclosing(used, cst.FunctionDef) is not function:
        return function is not None and source.constant(device) is not None
    scope = source.enclosing(made, cst.ClassDef) if own else function
    bound = source.bindings(device, scope)
    if len(bound) != 1 or source.enclosing(bound[0], cst.FunctionDef) is not function:
        return False
    before = source.statement(bound[0]) in source.block(made) and source.line(bound[0]) < source.line(made)
    return before or isinstance(source.parent(bound[0]), cst.Param)
