"""The training step in a source: the loss, the backward pass and the optimizer step.

The loss is sent back by ``loss.backward()``, by a framework's call that is given it
(``accelerator.backward(loss)``), or by a framework to which a ``training_step`` returns it.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import libcst as cst

from warpline.model.profile import LineCost
from warpline.rulekit.context import Context
from warpline.rulekit.reached import Reached
from warpline.rulekit.terms.evaluate import descend
from warpline.syntax.source import Source, Statement, called_name, is_method, methods
from warpline.wire.sites import Module, facts_of

#: Calls that bring a batch to the model and compute nothing.
_MOVES = {
    "to", "cuda", "cpu", "float", "long", "half", "next", "zip", "len", "range", "iter", "items", "pop",
    "get", "tensor", "as_tensor", "from_numpy", "contiguous", "view", "reshape", "unsqueeze", "size",
    "split", "chunk", "unbind", "narrow", "select", "squeeze", "permute", "transpose", "expand", "flatten",
    "clone", "detach", "unsqueeze_", "roll", "index_select",
    "record_function", "annotate", "rand", "randn", "randint", "zeros", "ones", "empty", "full",
}  # fmt: skip
#: Of Python's own, those that may add losses up; the others compute nothing of a batch.
_ADDING = {"sum", "min", "max", "map", "pow", "abs"}

#: Calls that send a loss back: its own, and frameworks' that are given it.
_BACKWARD = ("backward", "manual_backward")


@dataclass(frozen=True)
class TrainingStep:
    """``backward``: the call, or the ``return`` of the loss to a framework that makes the call; the rest is
    found around it, in the same block. ``graph``: lines that add to autograd's graph, as recorded.
    ``modules``: names of the user's classes that modules were made of. ``through``: methods, as
    ``Class.method``, that call their own object, as ``self(x)`` does, and so its ``forward``."""

    source: Source
    backward: cst.Call | cst.Return
    reached: Reached | None = None
    graph: frozenset[int] = frozenset()
    modules: frozenset[str] = frozenset()
    through: frozenset[str] = frozenset()

    def adds_to_graph(self, statement: Statement) -> bool:
        """Whether the loss may go back through what a statement computes: not through what makes a batch."""
        return not self.graph or not self.graph.isdisjoint(self.source.extent(statement))

    def ran(self, node: cst.CSTNode) -> bool:
        """Whether the statement of ``node`` ran before the measured steps ended, or may have."""
        return self.reached is None or self.reached.node(self.source, node) is not False

    def done(self, node: cst.CSTNode) -> bool:
        """Whether it may also have come to its end: it does not run as long as the steps."""
        return self.reached is None or self.reached.done(self.source, node) is not False

    @cached_property
    def loss(self) -> cst.BaseExpression:
        """The expression that is differentiated; of several candidates the first one computed in this
        step."""
        losses = self._losses()
        return next((loss for loss in losses if self._forward_to(loss)), losses[0])

    @property
    def handed_over(self) -> bool:
        """Whether a framework sends the loss back, and may do more with it than the script says."""
        return not isinstance(self.backward, cst.Call) or self.loss is not _receiver(self.backward)

    @cached_property
    def forward(self) -> list[Statement]:
        """The statements from the first that computes something for the loss to the last before
        ``backward()``; empty when the loss is not made in this block. A ``with`` around ``backward()``
        alone (such as ``record_function``) is not a block of its own."""
        return self._forward_to(self.loss)

    def _losses(self) -> list[cst.BaseExpression]:
        """What may be the loss: in ``x.backward(y)`` both, and of an object's own part only ``y``."""
        if isinstance(self.backward, cst.Return):
            return [_returned(self.source, self.backward)]
        first = self.backward.args[0] if self.backward.args else None
        given = first.value if first is not None and first.keyword is None and not first.star else None
        receiver = _receiver(self.backward)
        own = self.source.code(receiver).split(".")[0] in ("self", "cls")
        if given is None:
            return [receiver]
        return [given] if own else [receiver, given]

    def _forward_to(self, loss: cst.BaseExpression) -> list[Statement]:
        for block, statement in self._blocks:
            before = block[: block.index(statement)]
            if isinstance(self.backward, cst.Return) and any(map(computes, descend(loss, cst.Call))):
                before = block[: block.index(statement) + 1]  # `return self(batch).loss`
            if found := self._computing(before, loss):
                return found
        return []

    @cached_property
    def block(self) -> list[Statement]:
        """The block that holds the step: where ``forward`` is, else where ``backward()`` is."""
        blocks = [block for block, _ in self._blocks]
        first = self.forward[0] if self.forward else None
        return next((block for block in blocks if first in block), blocks[0] if blocks else [])

    @cached_property
    def beside(self) -> set[int]:
        """Lines of ``block`` that run neither the forward nor the backward pass."""
        others = (
            statement
            for statement in self.block
            if statement not in self.forward and not self.source.inside(self.backward, statement)
        )
        return {line for statement in others for line in self.source.extent(statement)}

    @cached_property
    def _blocks(self) -> list[tuple[list[Statement], Statement]]:
        """The block of ``backward()`` and those around it that only a ``with`` or an ``if`` parts from it,
        each with its statement that holds the call."""
        found, statement = [], self.source.statement(self.backward)
        while statement is not None:
            found.append((self.source.block(statement), statement))
            body = self.source.parent(statement)
            outer = self.source.parent(body) if body is not None else None
            while isinstance(outer, cst.Else) or (
                isinstance(outer, cst.If) and isinstance(self.source.parent(outer), cst.If)  # an `elif`
            ):
                outer = self.source.parent(outer)
            statement = outer if isinstance(outer, (cst.With, cst.If)) else None
        return found

    def _computing(self, before: list[Statement], loss: cst.BaseExpression) -> list[Statement]:
        needed = {name.value for name in descend(loss, cst.Name)}
        first = last = None
        for index in range(len(before) - 1, -1, -1):
            bound = set(_bound(before[index]))
            if not bound & needed and not self.source.inside(loss, before[index]):
                continue
            needed |= {name.value for name in descend(before[index], cst.Name)}
            if _computes(before[index]):
                first = index
                last = index if last is None else last
        return before[first : last + 1] if first is not None and last is not None else []

    @cached_property
    def loop(self) -> cst.For | cst.While | None:
        """The outermost loop around the step inside its function."""
        loops = self.source.loops(self.backward)
        return loops[-1] if loops else None

    def calls(self, *names: str) -> list[cst.Call]:
        """Calls of ``names`` in the same block or below it."""
        found = (call for statement in self.block for call in descend(statement, cst.Call))
        return [call for call in found if is_method(call, *names)]

    def optimizer_steps(self) -> list[cst.Call]:
        """``optimizer.step()``; schedulers' and profilers' are left out by their names."""
        named = [(call, self.source.code(_receiver(call)).lower()) for call in self.calls("step")]
        return [call for call, name in named if "opt" in name and "sched" not in name]


def training_steps(context: Context) -> list[TrainingStep]:
    """The ``backward()`` calls in the files of the profile, the costliest first; where there are none the
    ``training_step`` functions that return a loss.

    Only lines with a cost count: what did not run is not this step."""
    found, returned = [], []
    types = (facts_of(Module, site).type or "" for site in context.sites(Module.KIND))
    modules = frozenset(one.rpartition(".")[2] for one in types if "." in one)
    through = frozenset(cost.function for cost in context.profile.lines if calls_itself(context, cost))
    for file in dict.fromkeys(
        [context.profile.manifest.script, *(cost.file for cost in context.profile.lines)]
    ):
        source = context.source(file)
        own = (cost for cost in context.profile.lines if cost.file == file)
        graph = frozenset(cost.line for cost in own if max(cost.nodes, cost.total_nodes) > 0)
        for call in source.nodes(cst.Call):
            if is_method(call, *_BACKWARD):
                found.append(TrainingStep(source, call, context.reached, graph, modules, through))
        returned += [
            TrainingStep(source, one, context.reached, graph, modules, through)
            for one in _handed_back(source)
        ]
    found.sort(key=lambda step: (not step.ran(step.backward), -_spent(context, step)))
    return [*found, *(step for step in returned if step.ran(step.backward))]


def calls_itself(context: Context, cost: LineCost) -> bool:
    """Whether a line of a module's method calls the module, and that ran its ``forward``."""
    owner, source = cost.function.rpartition(".")[0], context.source(cost.file)
    forward = cost.file, f"{owner}.forward"
    return (
        forward in cost.called
        and (cost.file, cost.function) != forward
        and any(source.code(call.func) == "self" for call in source.at(cost.line, cst.Call))
    )


def _handed_back(source: Source) -> Iterator[cst.Return]:
    """The last ``return`` of each method ``training_step``; of what it calls, where it returns
    ``self.other(…)``."""
    for owner in source.nodes(cst.ClassDef):
        own, seen = methods(owner), set[str]()
        method = own.get("training_step")
        while method is not None and method.name.value not in seen:
            seen.add(method.name.value)
            returns = [one for one in source.nodes(cst.Return, within=method) if one.value is not None]
            if not returns:
                break
            value = _returned(source, returns[-1])
            called = source.code(value.func) if isinstance(value, cst.Call) else ""
            method = own.get(called[5:]) if called.startswith("self.") else None
            if method is None:
                yield returns[-1]


def _returned(source: Source, node: cst.Return) -> cst.BaseExpression:
    """The loss among what is returned: the entry ``loss`` of a dict, else all of it."""
    value = node.value
    assert value is not None
    if isinstance(value, cst.Dict):
        for element in value.elements:
            if isinstance(element, cst.DictElement) and source.literal(element.key) == "loss":
                return element.value
    return value


def _receiver(call: cst.Call) -> cst.BaseExpression:
    assert isinstance(call.func, cst.Attribute)
    return call.func.value


def _spent(context: Context, step: TrainingStep) -> float:
    cost = context.cost(step.source.path, step.source.line(step.backward))
    return cost.step_ms if cost is not None else 0.0


def _bound(statement: Statement) -> Iterator[str]:
    """Names that ``statement`` gives a value, also inside a ``with`` or ``if``."""
    for item in descend(statement, cst.AssignTarget, cst.AugAssign, cst.AnnAssign):
        for name in descend(item.target, cst.Name):
            yield name.value


def _computes(statement: Statement) -> bool:
    """Whether a statement calls what may be the model, or multiplies matrices itself."""
    return any(map(computes, descend(statement, cst.Call))) or any(descend(statement, cst.MatrixMultiply))


def computes(call: cst.Call) -> bool:
    """Whether a call may be the model's, and does not only move or name things."""
    name = called_name(call)
    plain = isinstance(call.func, cst.Name) and name in vars(builtins) and name not in _ADDING
    return name not in _MOVES and not plain
