"""Hand-written formulas in the functions that cost time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, TypeVar

import libcst as cst

from warpline.model.profile import LineCost
from warpline.rulekit.context import Context
from warpline.rulekit.costed import Costed
from warpline.rulekit.own_gradients import own_gradient
from warpline.rulekit.terms.flow import Flow, Step, follow
from warpline.rulekit.terms.rewrite import Rewrite
from warpline.rulekit.terms.term import Term
from warpline.syntax.source import Source, children

Found = TypeVar("Found")
Named = Callable[[Source, cst.FunctionDef], tuple[tuple[str, float], ...]]


@dataclass(frozen=True, slots=True)
class Formula(Costed, Generic[Found]):
    """``found``: what the matcher made of ``rewrite.node``.

    A line that calls other things as well (``(net(x) - y).square().mean()``) is divided by the forward time
    of its ops.
    """

    found: Found
    rewrite: Rewrite

    @property
    def flow(self) -> Flow:
        """The function that the formula is in, as terms."""
        return self.rewrite.flow

    @property
    def helpers(self) -> list[cst.FunctionDef]:
        """Functions that it goes on in."""
        return _helpers(self.rewrite, self.found)

    @property
    def place(self) -> tuple[str, int]:
        """Where the new expression goes."""
        source = self.flow.source
        return source.place(self.rewrite.node)


def formulas(
    context: Context, match: Callable[[Term], Found | None], helped: bool = False, named: Named | None = None
) -> Iterator[Formula[Found]]:
    """The largest expressions that ``match`` knows, in functions with enough time in total. Where the user
    wrote the backward pass, too, a call would have to take the place of both: there are none.

    ``helped``: a formula may go on in functions of the same file that only it calls, and is then none of
    theirs. ``named``: gives the names in a function that stand for numbers."""
    beside = tuple(context.sources())
    hot = _hot_functions(context)
    found = [one for place in hot for one in _formulas(context, match, *place, helped, beside, named)]
    within = {helper for one in found for helper in one.helpers}
    yield from (one for one in found if one.flow.function not in within)


def _formulas(
    context: Context,
    match: Callable[[Term], Found | None],
    file: str,
    function: cst.FunctionDef,
    helped: bool,
    beside: tuple[Source, ...],
    named: Named | None,
) -> Iterator[Formula[Found]]:
    source = context.source(file)
    flow = follow(source, function, helped, beside, named(source, function) if named is not None else ())
    consumed: set[Step] = set()
    for step in reversed(flow.steps):
        if step in consumed:
            continue
        for node in _largest(flow, step, match):
            found = match(flow.terms[node])
            assert found is not None
            rewrite = Rewrite(flow, step, node)
            consumed |= set(rewrite.removed)
            lines = sorted({*_lines(rewrite, found), *_lines_of(flow, _helpers(rewrite, found))})
            costs = tuple(context.costs((source.path, line) for line in lines))
            shares = tuple(_share(rewrite, cost) for cost in costs)
            formula = Formula(costs, shares, found, rewrite)
            if costs and context.matters(formula.step_ms):
                yield formula


def _share(rewrite: Rewrite, cost: LineCost) -> float:
    """How much of a line is the formula's own work."""
    flow = rewrite.flow
    others = {line for call in flow.evaluator.unknown for line in flow.source.extent(call)}
    if cost.line not in others:
        return 1.0
    own = {arg.op for step in (rewrite.step, *rewrite.removed) for arg in _terms(step.term)} | {
        "sub",
        "mul",
        "square",
    }
    forward = [op for op in cost.ops if op.phase == "forward"]
    whole = sum(op.device_ms for op in forward)
    mine = sum(op.device_ms for op in forward if op.name.removeprefix("aten::").strip("_") in own)
    return mine / whole if whole else 0.0


def _terms(term: Term) -> set[Term]:
    found: set[Term] = set()
    waiting = [term]
    while waiting:
        item = waiting.pop()
        if item not in found:
            found.add(item)
            waiting.extend(item.args if item.op != "call" else ())
    return found


def _hot_functions(context: Context) -> list[tuple[str, cst.FunctionDef]]:
    found: dict[tuple[str, cst.FunctionDef], float] = {}
    for cost in context.profile.lines:
        inner = function_at(context.source(cost.file), cost.line) if cost.step_ms > 0 else None
        if inner is not None and own_gradient(context.source(cost.file), inner) is None:
            found[cost.file, inner] = found.get((cost.file, inner), 0.0) + cost.step_ms
    return [key for key, spent in found.items() if context.matters(spent)]


def function_at(source: Source, line: int) -> cst.FunctionDef | None:
    """The innermost function that contains ``line``."""
    functions = _by_line(source)
    return functions[line] if line < len(functions) else None


@lru_cache(maxsize=64)
def _by_line(source: Source) -> list[cst.FunctionDef | None]:
    found: list[cst.FunctionDef | None] = [None] * (len(source.lines) + 1)
    # Outer functions come first in the text, so inner ones overwrite them.
    for function in source.nodes(cst.FunctionDef):
        for line in source.extent(function):
            found[line] = function
    return found


def _largest(flow: Flow, step: Step, match: Callable[[Term], Found | None]) -> list[cst.BaseExpression]:
    """Expressions of ``step`` that match and lie in no other that does; a mere name never."""
    found: list[cst.BaseExpression] = []
    waiting: list[cst.CSTNode] = [step.expression]
    while waiting:
        node = waiting.pop()
        term = flow.terms.get(node) if isinstance(node, cst.BaseExpression) else None
        # A name and a call stand for what is computed elsewhere, and a change of type computes nothing.
        plain = isinstance(node, (cst.Name, cst.Attribute)) or (
            isinstance(node, cst.Call)
            and (node in flow.evaluator.inlined or (term is not None and term.op == "cast"))
        )
        if term is not None and not plain and match(term) is not None:
            assert isinstance(node, cst.BaseExpression)
            found.append(node)
        else:
            waiting.extend(reversed(tuple(children(node))))
    return found


def _helpers(rewrite: Rewrite, found: object) -> list[cst.FunctionDef]:
    """The functions that are called between the match's input and its result."""
    flow, given = rewrite.flow, getattr(found, "input", None)
    parts = (rewrite.node, *(step.expression for step in rewrite.removed))
    before = _terms(given) if given is not None else set()
    return [
        helper
        for call, helper in flow.evaluator.inlined.items()
        if flow.terms[call] not in before and any(flow.source.inside(call, part) for part in parts)
    ]


def _lines_of(flow: Flow, functions: list[cst.FunctionDef]) -> Iterator[int]:
    for function in functions:
        for statement in function.body.body:
            yield from flow.source.extent(statement)


def _lines(rewrite: Rewrite, found: object) -> Iterator[int]:
    # What the call is given is computed as before, also where its statement goes.
    given = {part for term in getattr(found, "arguments", ()) for part in _terms(term)}
    made = (step.expression for step in rewrite.removed if step.term not in given)
    for node in (rewrite.node, *made):
        yield from rewrite.flow.source.extent(node)
