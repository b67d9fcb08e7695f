"""Walks a function's statements: the term of every expression, and the assignment that a name reads.

``follow`` gives a :class:`Flow`. Straight code is exact; at an ``if`` that both ways leave by its end
a name becomes ``if(test, then, else)``; what a loop assigns is unknown inside and after it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import libcst as cst

from warpline.rulekit.terms.evaluate import BINARY, Evaluator, descend, module_members
from warpline.rulekit.terms.term import Term
from warpline.syntax.source import Source, Statement, called_name, children, only_target, receiver

_AUGMENTED: dict[Any, Any] = {
    cst.AddAssign: cst.Add, cst.SubtractAssign: cst.Subtract, cst.MultiplyAssign: cst.Multiply,
    cst.DivideAssign: cst.Divide, cst.PowerAssign: cst.Power, cst.MatrixMultiplyAssign: cst.MatrixMultiply,
}  # fmt: skip


@dataclass(slots=True, eq=False)
class Step:
    """One assignment of a plain name, or one return (``target`` None)."""

    statement: Statement
    target: str | None
    expression: cst.BaseExpression
    term: Term
    before: dict[str, Term]  # names as they were
    defined: dict[str, frozenset[Step]]  # the assignments they came from
    augmented: bool = False


@dataclass(slots=True)
class Flow:
    source: Source
    function: cst.FunctionDef
    owner: cst.ClassDef | None
    evaluator: Evaluator
    steps: list[Step] = field(default_factory=list)
    #: Assignment -> the names that read it.
    reads: dict[Step, list[cst.Name]] = field(default_factory=dict)
    #: Names that a nested function, a lambda or a loop's next round may read at any time.
    captured: set[str] = field(default_factory=set)

    @property
    def terms(self) -> dict[cst.BaseExpression, Term]:
        """The term of each expression that was walked over."""
        return self.evaluator.terms


@lru_cache(maxsize=1024)
def follow(source: Source, function: cst.FunctionDef, helped: bool = False) -> Flow:
    """The terms of a function's body, statement by statement. Kept, as several rules ask for the same
    function.

    ``helped``: calls of functions of the same file that nothing else calls are followed into them."""
    owner = source.enclosing(function, cst.ClassDef, cst.FunctionDef)
    owner = owner if isinstance(owner, cst.ClassDef) else None
    helpers = _helpers(source, owner) if helped else {}
    evaluator = Evaluator(source, module_members(owner) if owner else {}, function, helpers)
    walker = _Walker(Flow(source, function, owner, evaluator))
    walker.suite(function.body)
    return walker.flow


@lru_cache(maxsize=256)
def _helpers(source: Source, owner: cst.ClassDef | None) -> dict[str, cst.FunctionDef]:
    """Functions that are written and read once in the file, without decorators, by how they are called:
    those of the file itself, and the methods of ``owner``."""
    functions = source.nodes(cst.FunctionDef)
    written = Counter(one.name.value for one in functions)
    names = [one for one in source.nodes(cst.Name) if not isinstance(source.parent(one), cst.FunctionDef)]
    read = Counter(one.value for one in names)
    found: dict[str, cst.FunctionDef] = {}
    for function in functions:
        around = source.enclosing(function, cst.ClassDef, cst.FunctionDef)
        name = function.name.value
        if not function.decorators and around in (None, owner) and written[name] == read[name] == 1:
            found[name if around is None else f"self.{name}"] = function
    return found


#: Context managers that decide about gradients.
_GRADIENTS = ("no_grad", "inference_mode", "set_grad_enabled", "enable_grad")


class _Walker:
    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.evaluator = flow.evaluator
        self.defined: dict[str, frozenset[Step]] = {}
        params = flow.function.params
        stars = [item for item in (params.star_arg, params.star_kwarg) if isinstance(item, cst.Param)]
        for param in (*params.posonly_params, *params.params, *params.kwonly_params, *stars):
            self.evaluator.bind_fresh(param.name.value)

    # -- statements --------------------------------------------------------------------------

    def suite(self, body: cst.BaseSuite) -> None:
        for statement in body.body:
            if isinstance(statement, cst.SimpleStatementLine):
                for small in statement.body:
                    self.small(statement, small)
            elif isinstance(statement, cst.BaseCompoundStatement):
                self.compound(statement)

    def small(self, statement: Statement, node: cst.BaseSmallStatement) -> None:
        target, changed = only_target(node), self.changed_in_place(node)
        if isinstance(node, cst.Assign) and isinstance(target, cst.Name):
            self.assign(statement, target.value, node.value)
        elif isinstance(node, cst.AnnAssign) and isinstance(node.target, cst.Name) and node.value is not None:
            self.assign(statement, node.target.value, node.value)
        elif isinstance(node, cst.Assign) and isinstance(target, cst.Tuple):
            self.unpack(target, node.value)
        elif isinstance(node, cst.AugAssign) and isinstance(node.target, cst.Name):
            self.augment(statement, node.target, node)
        elif isinstance(node, cst.Return) and node.value is not None:
            self.record(statement, None, node.value)
        elif isinstance(node, cst.Expr) and changed:
            self.assign(statement, changed, node.value)
        elif isinstance(node, (cst.Global, cst.Nonlocal)):
            self.flow.captured |= {item.name.value for item in node.names}
        else:
            for child in children(node):
                if isinstance(child, cst.BaseExpression):
                    self.read(child)
            self.forget(node)

    def assign(self, statement: Statement, name: str, value: cst.BaseExpression) -> None:
        step = self.record(statement, name, value)
        self.evaluator.env[name] = step.term
        self.defined[name] = frozenset([step])

    def augment(self, statement: Statement, target: cst.Name, node: cst.AugAssign) -> None:
        operator = _AUGMENTED.get(type(node.operator))
        left = self.read(target)
        step = self.record(statement, target.value, node.value)
        step.augmented = True
        make = BINARY.get(operator) if operator else None
        step.term = (
            make(self.evaluator.made, left, step.term) if make else self.evaluator.made.fresh("opaque")
        )
        self.evaluator.env[target.value] = step.term
        self.defined[target.value] = frozenset([step])

    def record(self, statement: Statement, target: str | None, value: cst.BaseExpression) -> Step:
        before, defined = dict(self.evaluator.env), dict(self.defined)
        step = Step(statement, target, value, self.read(value), before, defined)
        self.flow.steps.append(step)
        return step

    def unpack(self, target: cst.Tuple, value: cst.BaseExpression) -> None:
        whole = self.read(value)
        for index, element in enumerate(target.elements):
            if not isinstance(element.value, cst.Name):
                self.forget(element)
                continue
            name = element.value.value
            self.evaluator.bind_fresh(name)
            self.defined[name] = frozenset()
            if whole.op == "tuple" and len(whole.args) == len(target.elements):
                self.evaluator.env[name] = whole.args[index]
            elif (whole.op, whole.value) in (("attr", "shape"), ("size", None)):
                size = self.evaluator.made.make("size", whole.args[0], value=index - len(target.elements))
                self.evaluator.env[name] = size

    def changed_in_place(self, node: cst.BaseSmallStatement) -> str:
        """``x`` of ``x.mul_(2)`` on a line of its own; else ""."""
        call = node.value if isinstance(node, cst.Expr) else None
        held, name = receiver(call), called_name(call) if isinstance(call, cst.Call) else ""
        known = isinstance(held, cst.Name) and held.value in self.evaluator.env
        in_place = known and name.endswith("_") and not name.endswith("__")
        return held.value if in_place and isinstance(held, cst.Name) else ""

    def compound(self, node: cst.BaseCompoundStatement) -> None:
        if isinstance(node, cst.If):
            self.branch(node)
        elif isinstance(node, cst.With):
            for item in node.items:
                self.read(item.item)
            before = dict(self.evaluator.env)
            self.suite(node.body)
            managers = (item.item.func for item in node.items if isinstance(item.item, cst.Call))
            if any(self.flow.source.is_named(manager, *_GRADIENTS) for manager in managers):
                for name, term in list(self.evaluator.env.items()):
                    if before.get(name) is not term:  # it has no gradient, and the same with one is another
                        self.evaluator.bind_fresh(name)
        elif isinstance(node, (cst.FunctionDef, cst.ClassDef)):
            self.capture(node)
            self.evaluator.bind_fresh(node.name.value)
        else:  # loops, try, match: what they assign is unknown within and after
            self.capture(node)
            self.forget(node)
            for child in children(node):
                if isinstance(child, cst.BaseExpression):
                    self.read(child)
                elif isinstance(child, cst.BaseSuite):
                    self.suite(child)
                elif isinstance(child, (cst.Else, cst.Finally, cst.ExceptHandler, cst.ExceptStarHandler)):
                    self.suite(child.body)
            self.forget(node)

    def branch(self, node: cst.If) -> None:
        test = self.read(node.test)
        env, defined = dict(self.evaluator.env), dict(self.defined)
        self.suite(node.body)
        then_env, then_defined = self.evaluator.env, self.defined
        self.evaluator.env, self.defined = dict(env), dict(defined)
        if isinstance(node.orelse, cst.If):
            self.branch(node.orelse)
        elif node.orelse is not None:
            self.suite(node.orelse.body)
        if _leaves(node.body):
            return
        if isinstance(node.orelse, cst.Else) and _leaves(node.orelse.body):
            self.evaluator.env, self.defined = then_env, then_defined
            return
        for name in [*then_env, *(name for name in self.evaluator.env if name not in then_env)]:
            then, other = then_env.get(name), self.evaluator.env.get(name)
            if then is None or other is None:
                self.evaluator.bind_fresh(name)
            elif then is not other:
                self.evaluator.env[name] = self.evaluator.made.make("if", test, then, other)
            self.defined[name] = then_defined.get(name, frozenset()) | self.defined.get(name, frozenset())

    # -- names -------------------------------------------------------------------------------

    def read(self, node: cst.BaseExpression) -> Term:
        self.use(node)
        for inner in descend(node, cst.Lambda, cst.BaseComp):
            self.flow.captured |= {name.value for name in self.loads(inner)}
        return self.evaluator.term(node)

    def use(self, node: cst.CSTNode) -> None:
        """The names in ``node`` are read."""
        for name in self.loads(node):
            for step in self.defined.get(name.value, ()):
                self.flow.reads.setdefault(step, []).append(name)

    def loads(self, node: cst.CSTNode) -> list[cst.Name]:
        """Names within ``node`` that are neither attributes nor keywords."""
        return [name for name in descend(node, cst.Name) if self.flow.source.is_value(name)]

    def capture(self, node: cst.CSTNode) -> None:
        """Whatever ``node`` names may be read after any assignment of it."""
        self.flow.captured |= {name.value for name in self.loads(node)}

    def forget(self, node: cst.CSTNode) -> None:
        targets: list[cst.CSTNode] = [
            item.target
            for item in descend(node, cst.AssignTarget, cst.AugAssign, cst.AnnAssign, cst.For, cst.NamedExpr)
        ]
        for target in targets:
            if not isinstance(target, cst.Name):
                self.use(target)  # `x[i] = 1` needs the x that was
            for name in self.loads(target):
                if not isinstance(self.flow.source.parent(name), cst.Attribute):
                    self.evaluator.bind_fresh(name.value)
                    self.defined[name.value] = frozenset()


def _leaves(body: cst.BaseSuite) -> bool:
    last = body.body[-1] if body.body else None
    last = last.body[-1] if isinstance(last, cst.SimpleStatementLine) else last
    return isinstance(last, (cst.Return, cst.Raise, cst.Continue, cst.Break))
