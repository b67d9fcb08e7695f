"""Optimizer classes that write out Adam's update, and the edit that makes torch's fused one in their place.

The update of one parameter in the recorded step is computed at sample points, which gives its numbers: the
shares of both averages, what is added to the root, and the step's number, which has to be a whole one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import libcst as cst

from warpline.model.profile import LineCost
from warpline.model.report import Fix
from warpline.rulekit.context import Context
from warpline.rulekit.graph import Graph, Node, graph_around
from warpline.rulekit.graph.evaluate import Evaluation, leaves
from warpline.rulekit.rounds import nodes_at
from warpline.rulekit.terms import function_at
from warpline.syntax.edits import Edits, Refused
from warpline.syntax.source import NOT_LITERAL, Source, methods, only_target, receiver, short_name

ADVICE = "if this is Adam's update, `torch.optim.Adam` or `AdamW` with `fused=True` makes it in one pass"
_OTHERWISE = f"the optimizer does more than Adam, or is used otherwise: {ADVICE}"
#: What torch's Adam and AdamW take by default; the decay, which is optional here, only AdamW.
_DEFAULTS = {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 1e-2}
_NEEDED = {"lr", "betas", "eps"}
_FIRST_VERSION = (2, 4)  # fused on a CPU
#: Of numbers that two orders of the same double-precision arithmetic give; far above their rounding.
_CLOSE = 1e-6
#: A root of this is large beside what is added to it.
_LARGE = 1e8
#: Samples of a parameter, its gradient and both averages, to compare the update with Adam's.
_SAMPLES = ((0.7, 0.2, -0.4, 0.3), (-1.1, -0.6, 0.5, 1.7), (0.1, 0.9, 0.3, 0.05), (2.0, -0.3, -0.2, 0.8))


@dataclass(frozen=True, slots=True)
class _Numbers:
    """``lr`` and the rest as AdamW takes them, in step number ``step``."""

    lr: float
    betas: tuple[float, float]
    eps: float
    weight_decay: float
    step: int

    def after(self, p: float, grad: float, mean: float, square: float) -> float:
        """The parameter after Adam's update."""
        first, second = self.betas
        mean, square = first * mean + (1 - first) * grad, second * square + (1 - second) * grad**2
        root = math.sqrt(square / (1 - second**self.step))
        return p * (1 - self.lr * self.weight_decay) - self.lr / (1 - first**self.step) * mean / (
            root + self.eps
        )


def fused_adam(context: Context, cost: LineCost) -> Fix:
    """Make torch's fused Adam, or AdamW, where the optimizer is made whose update a line writes out. Raises
    Refused."""
    source, update = context.source(cost.file), function_at(context.source(cost.file), cost.line)
    owner = source.enclosing(update, cst.ClassDef) if update is not None else None
    old = context.torch_version < _FIRST_VERSION
    if update is None or owner is None or "step" not in methods(owner) or old:
        raise Refused(ADVICE)
    calls, init = _calls(context, source, owner, update.name.value), _initial(source, owner)
    recorded = _recorded(context, source, owner)
    edits = Edits(calls[0][0])
    kinds = [
        _made_by_torch(context, edits, call, _settings(edits.source, source, init, call), recorded)
        for _, call in calls
    ]
    return edits.fix(f"Use torch's fused {kinds[0]}", "unsafe")


def _made_by_torch(
    context: Context,
    edits: Edits,
    call: cst.Call,
    settings: dict[str, tuple[Source, cst.BaseExpression]],
    recorded: list[_Numbers],
) -> str:
    """Put torch's optimizer for the one that ``call`` makes, and give its name. Raises Refused where its
    settings are none of the recorded ones."""
    for name, (where, value) in settings.items():
        written, found = where.literal(value), [getattr(numbers, name) for numbers in recorded]
        # A scheduler may have changed the rate.
        known = [written, *(context.profile.facts.dataflow.rates if name == "lr" else ())]
        near = any(_is_near(one, number) for one in known for number in found if one is not NOT_LITERAL)
        if written is not NOT_LITERAL and not near:
            raise Refused(_OTHERWISE)
    decays = {numbers.weight_decay != 0 for numbers in recorded}
    if decays != {"weight_decay" in settings and not _is_none(*settings["weight_decay"])}:
        raise Refused(_OTHERWISE)
    kind = "AdamW" if True in decays else "Adam"
    adam = edits.add_import(f"torch.optim.{kind}", "import torch")
    given = [edits.source.code(call.args[0].value)]
    for name, (where, value) in settings.items():
        if where.literal(value) != _DEFAULTS[name] and (True in decays or name != "weight_decay"):
            code = where.code(value)
            given.append(f"{name}=({code})" if isinstance(value, cst.Tuple) else f"{name}={code}")
    edits.replace(call, f"{adam}({', '.join([*given, 'fused=True'])})")
    return kind


def _is_near(written: Any, found: Any) -> bool:
    pairs = zip(written, found, strict=True) if isinstance(written, tuple) else [(written, found)]
    return all(math.isclose(one, other, rel_tol=1e-3) for one, other in pairs)


def _is_none(where: Source, value: cst.BaseExpression) -> bool:
    return bool(where.literal(value) == 0)


# -- the text -----------------------------------------------------------------------------------


def _calls(
    context: Context, source: Source, owner: cst.ClassDef, update: str
) -> list[tuple[Source, cst.Call]]:
    """The calls that make such optimizers, all in one file. The class has nothing that torch's has not, but
    perhaps a method ``update`` of its own, and nothing else reads their state. Raises Refused."""
    name = owner.name.value
    own = {one.name.value for one in source.nodes(cst.FunctionDef, within=owner)}
    if len(owner.bases) != 1 or not source.is_named(owner.bases[0].value, "Optimizer"):
        raise Refused(_OTHERWISE)
    uses = [
        one
        for other in context.sources()
        for one in other.nodes(cst.Name)
        if one.value == name
        and other.enclosing(one, cst.ImportFrom) is None
        and not (other is source and other.inside(one, owner))
    ]
    calls = [*context.calls(name)]
    hidden = {"state", update} - {"step"}
    read = [
        one
        for other in context.sources()
        for one in other.nodes(cst.Attribute)
        if one.attr.value in hidden and not (other is source and other.inside(one, owner))
    ]
    files = {made_in.path for made_in, _ in calls}
    if own != {"__init__", "step", update} or len(uses) != len(calls) or len(files) != 1:
        raise Refused(_OTHERWISE)
    if read or any(_may_be_loaded(context, *one) for one in calls):
        raise Refused(_OTHERWISE)
    return calls


def _may_be_loaded(context: Context, made_in: Source, call: cst.Call) -> bool:
    """Whether the script may load a saved state into the optimizer that ``call`` makes: it loads one, and
    not into something with another name, be it that of a function's parameter."""
    held = only_target(made_in.parent(call))
    optimizer = short_name(held)
    for source, load in context.calls("load_state_dict"):
        into = receiver(load)
        name = short_name(into)
        function = source.enclosing(load, cst.FunctionDef)
        given = [
            short_name(arg.value)
            for _, one in (context.calls(function.name.value) if function is not None else ())
            for arg in one.args
        ]
        if not name or not optimizer or "opt" in name.lower() or optimizer in (name, *given):
            return True
    return False


def _initial(source: Source, owner: cst.ClassDef) -> cst.FunctionDef:
    """Its ``__init__``, which passes on what it is given, by the names that Adam has. Raises Refused."""
    init = methods(owner)["__init__"]
    calls = source.nodes(cst.Call, within=init)
    base = [call for call in calls if source.code(call.func).endswith("__init__")]
    passed = [arg.value for arg in base[0].args] if len(base) == 1 else []
    if len(passed) != 2 or init.params.star_kwarg is not None or init.params.kwonly_params:
        raise Refused(_OTHERWISE)
    held = passed[1]
    given = source.assigned(source.code(held), within=init) if isinstance(held, cst.Name) else [held]
    entries = [pair for one in given for pair in source.entries(one).items()]
    pairs = {key: source.code(value) for key, value in entries}
    names = [one.name.value for one in init.params.params][1:]
    if source.code(passed[0]) != names[0] or pairs != {name: name for name in names[1:]}:
        raise Refused(_OTHERWISE)
    if not set(pairs) <= set(_DEFAULTS):
        raise Refused(_OTHERWISE)
    return init


def _settings(
    made_in: Source, source: Source, init: cst.FunctionDef, call: cst.Call
) -> dict[str, tuple[Source, cst.BaseExpression]]:
    """What the call gives for each of Adam's settings, else the default of the class. Raises Refused."""
    if not call.args or call.args[0].keyword is not None or any(arg.star for arg in call.args):
        raise Refused(_OTHERWISE)
    found = {}
    for position, param in enumerate(init.params.params[2:], 1):
        given = made_in.argument(call, param.name.value, position)
        if given is not None:
            found[param.name.value] = made_in, given.value
        elif param.default is not None and source.literal(param.default) is not NOT_LITERAL:
            found[param.name.value] = source, param.default
    if not set(found) >= _NEEDED:
        raise Refused(_OTHERWISE)
    return found


# -- the recorded step --------------------------------------------------------------------------


def _recorded(context: Context, source: Source, owner: cst.ClassDef) -> list[_Numbers]:
    """The numbers of each update that the class made of a parameter. Raises Refused where one is none of
    Adam's."""
    graph = graph_around(context.profile.facts.dataflow)
    if graph is None:
        raise Refused(ADVICE)
    nodes = nodes_at(graph, source, owner)
    updates = [
        node
        for node in nodes
        if graph.is_in_place(node) and node.inputs and graph.origin(node.inputs[0]) in graph.parameters
    ]
    if not updates or len({graph.origin(node.inputs[0]) for node in updates}) != len(updates):
        raise Refused(_OTHERWISE)
    constants = {
        abs(float(one))
        for other in nodes
        for one in (*other.arguments, *other.named.values())
        if isinstance(one, (int, float)) and one
    }
    return [_numbers(graph, node, constants) for node in updates]


def _numbers(graph: Graph, node: Node, constants: set[float]) -> _Numbers:
    while further := [one for one, value in graph.uses(node.outputs[0]) if _writes(graph, one, value)]:
        node = further[0]
    for given in permutations(leaves(graph, node.outputs[0])[node.outputs[0]]):
        if len(given) == len(_SAMPLES[0]) and (found := _fitted(graph, node, given, constants)) is not None:
            return found
    raise Refused(_OTHERWISE)


def _writes(graph: Graph, node: Node, value: int) -> bool:
    return graph.is_in_place(node) and node.inputs[0] == value


def _fitted(graph: Graph, node: Node, given: tuple[int, ...], constants: set[float]) -> _Numbers | None:
    """Adam's numbers, where ``node`` is its update and the values ``given`` are a parameter, its gradient and
    both averages."""

    def after(*samples: tuple[float, ...]) -> tuple[float, ...]:
        columns = zip(*samples, strict=True)
        found = Evaluation(graph, dict(zip(given, columns, strict=True))).of(node.outputs[0])
        return found or (math.nan,) * len(samples)

    plus, minus, square, large, bare, kept = after(
        (0.0, 1.0, 1.0, 1.0),
        (0.0, -1.0, 1.0, 1.0),
        (0.0, math.sqrt(_LARGE), 0.0, 0.0),
        (0.0, 0.0, 1.0, _LARGE),
        (0.0, 0.0, 1.0, 0.0),
        (1.0, 0.0, 0.0, 1.0),
    )
    try:
        first = 1 / (1 + (plus - minus) / (plus + minus))
        # What the root is of: the old average alone, and the gradient alone.
        ratio = (first / large) / ((1 - first) * math.sqrt(_LARGE) / square)
        second = ratio**2 / (1 + ratio**2)
        product = -large * math.sqrt(second * _LARGE) / first  # of the rate and the root of the correction
    except ArithmeticError:
        return None
    for eps in constants:
        rate = -bare * eps / first
        corrected = 1 - (product / rate) ** 2 if rate else 0.0
        if not 0 < corrected < 1 or not 0 < first < 1 or not 0 < second < 1:
            continue
        step = round(math.log(corrected) / math.log(second))
        lr = rate * (1 - first**step)
        found = _Numbers(lr, (first, second), eps, (1 - kept) / lr if lr else 0.0, step)
        if step and all(map(_same, after(*_SAMPLES), map(found.after, *zip(*_SAMPLES, strict=True)))):
            return found
    return None


def _same(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=_CLOSE, abs_tol=_CLOSE)
