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

from warpline.rulekit.terms.evaluate import BINARY, Evaluator, descend, module_members, names_in
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
    beside: tuple[Source, ...] = ()  # files with functions that it may call

    @property
    def terms(self) -> dict[cst.BaseExpression, Term]:
        """The term of each expression that was walked over."""
        return self.evaluator.terms

    def is_of_gradients(self, node: cst.With) -> bool:
        """Whether it decides about gradients."""
        managers = (item.item.func for item in node.items if isinstance(item.item, cst.Call))
        return any(self.source.is_named(manager, *_GRADIENTS) for manager in managers)


@lru_cache(maxsize=1024)
def follow(
    source: Source,
    function: cst.FunctionDef,
    helped: bool = False,
    beside: tuple[Source, ...] = (),
    named: tuple[tuple[str, float], ...] = (),
) -> Flow:
    """The terms of a function's body, statement by statement. Kept, as several rules ask for the same
    function.

    ``helped``: calls of functions of the same file that nothing else calls are followed into them.
    ``beside``: files with functions that may change what they are given. ``named``: parameters and attributes
    that stand for numbers, with these."""
    owner = source.enclosing(function, cst.ClassDef, cst.FunctionDef)
    owner = owner if isinstance(owner, cst.ClassDef) else None
    helpers = _helpers(source, owner) if helped else {}
    evaluator = Evaluator(source, module_members(owner) if owner else {}, function, helpers, named)
    walker = _Walker(Flow(source, function, owner, evaluator, beside=beside))
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
            self.evaluator.bind_parameter(param.name.value)

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
            self.change(statement, changed, node.value)
        elif isinstance(node, cst.Assign) and (hidden := self.hidden(target)) is not None:
            self.fill(statement, *hidden, node.value)
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
            if whole.op == "triu_indices" and len(target.elements) == 2:
                made = self.evaluator.made
                self.evaluator.env[name] = made.make("index", whole, made.const(index))
            elif whole.op == "tuple" and len(whole.args) == len(target.elements):
                self.evaluator.env[name] = whole.args[index]
            elif (whole.op, whole.value) in (("attr", "shape"), ("size", None)):
                size = self.evaluator.made.make("size", whole.args[0], value=index - len(target.elements))
                self.evaluator.env[name] = size

    def changed_in_place(self, node: cst.BaseSmallStatement) -> str:
        """``x`` of ``x.mul_(2)``, or of ``change(x)`` with a function of the script's or of a module, as a
        statement; else ""."""
        call = node.value if isinstance(node, cst.Expr) else None
        if not isinstance(call, cst.Call):
            return ""
        held, name, full = receiver(call), called_name(call), self.flow.source.name(call.func)
        in_place = name.endswith("_") and not name.endswith("__")
        if full and full.split(".")[0] not in ("self", *self.evaluator.env):
            held = call.args[0].value if call.args and call.args[0].keyword is None else None
            in_place = in_place or bool(self.functions(call))
        return held.value if in_place and isinstance(held, cst.Name) and self.known(held) else ""

    def known(self, node: cst.CSTNode | None) -> bool:
        return isinstance(node, cst.Name) and node.value in self.evaluator.env

    def change(self, statement: Statement, name: str, call: cst.BaseExpression) -> None:
        """What a name holds after a call that changes it in place: what the text of the script's own function
        makes of it."""
        step = self.record(statement, name, call)
        found = self.functions(call) if isinstance(call, cst.Call) else []
        changed = self.changed_by(call, *found[0]) if len(found) == 1 and isinstance(call, cst.Call) else None
        if changed is step.before[name]:
            self.flow.steps.remove(step)
            return
        if changed is not None:
            step.term = changed
            self.evaluator.unknown.discard(call)
        self.evaluator.env[name] = step.term
        self.defined[name] = frozenset([step])

    def functions(self, call: cst.Call) -> list[tuple[Source, cst.FunctionDef]]:
        """The script's functions that ``call`` may call by a plain name."""
        name = call.func.value if isinstance(call.func, cst.Name) else ""
        return [
            (source, one)
            for source in dict.fromkeys((self.flow.source, *self.flow.beside))
            for one in source.nodes(cst.FunctionDef)
            if one.name.value == name and source.enclosing(one, cst.ClassDef, cst.FunctionDef) is None
        ]

    def changed_by(self, call: cst.Call, source: Source, function: cst.FunctionDef) -> Term | None:
        """What the first argument of ``call`` is after it; None where the text does not tell."""
        params, args = function.params.params, call.args
        positional = [arg.value for arg in args if arg.keyword is None]
        given = dict(zip((one.name.value for one in params), positional, strict=False))
        given |= {arg.keyword.value: arg.value for arg in args if arg.keyword is not None}
        first = params[0].name.value if params else ""
        if any(arg.star for arg in args) or function.decorators or not _changes_only(function, first):
            return None
        evaluator = Evaluator(source, {}, function)
        evaluator.made = self.evaluator.made
        walker = _Walker(Flow(source, function, None, evaluator))
        for one in params:
            if one.name.value in given:
                evaluator.env[one.name.value] = self.evaluator.terms[given[one.name.value]]
            elif one.default is not None:
                evaluator.env[one.name.value] = evaluator.term(one.default)
        walker.suite(function.body)
        return None if evaluator.unknown else evaluator.env.get(first)

    def hidden(self, target: cst.CSTNode | None) -> tuple[cst.Name, cst.Subscript, Term] | None:
        """The name, and which entries ``name[…] = value`` sets, as a mask (see ``Evaluator.chosen``)."""
        held = target.value if isinstance(target, cst.Subscript) else None
        if not isinstance(target, cst.Subscript) or not isinstance(held, cst.Name) or not self.known(held):
            return None
        chosen = self.evaluator.chosen(target)
        return (held, target, chosen) if chosen is not None else None

    def fill(
        self,
        statement: Statement,
        held: cst.Name,
        target: cst.Subscript,
        chosen: Term,
        value: cst.BaseExpression,
    ) -> None:
        self.use(target)
        step = self.record(statement, held.value, value)
        step.term = self.evaluator.made.make("masked_fill", step.before[held.value], chosen, step.term)
        self.evaluator.env[held.value] = step.term
        self.defined[held.value] = frozenset([step])

    def compound(self, node: cst.BaseCompoundStatement) -> None:
        if isinstance(node, cst.If):
            self.branch(node)
        elif isinstance(node, cst.With):
            for item in node.items:
                self.read(item.item)
            before = dict(self.evaluator.env)
            self.suite(node.body)
            if self.flow.is_of_gradients(node):
                for name, term in list(self.evaluator.env.items()):
                    # It has no gradient, and the same with one is another.
                    if before.get(name) is not term and not self.is_of_classes(term):
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

    def is_of_classes(self, term: Term) -> bool:
        """Whether only one-hot rows, sizes, numbers and settings are in it, so it has no gradient."""
        if term.op in ("add", "sub", "mul", "div"):
            return all(map(self.is_of_classes, term.args))
        if term.op == "attr" and term.args[0].op == "name":
            return term.args[0].value[0] == "self" and term.value not in self.evaluator.members
        return term.op in ("one_hot", "const", "size", "zeros_like", "full_like")

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


def _changes_only(function: cst.FunctionDef, name: str) -> bool:
    """Whether a function has no other effect than to change what it gets as ``name``."""
    for node in descend(function.body, cst.AssignTarget, cst.AugAssign, cst.AnnAssign, cst.Expr):
        of = node.value if isinstance(node, cst.Expr) else node.target
        if isinstance(of, cst.SimpleString):
            continue
        held = (
            receiver(of) if isinstance(of, cst.Call) else of.value if isinstance(of, cst.Subscript) else None
        )
        own = isinstance(held, cst.Name) and held.value == name
        local = isinstance(of, (cst.Name, cst.Tuple)) and name not in names_in(of)
        if not (own or (local and not isinstance(node, cst.Expr))):
            return False
    return not any(descend(function.body, cst.Global, cst.Nonlocal))


def _leaves(body: cst.BaseSuite) -> bool:
    last = body.body[-1] if body.body else None
    last = last.body[-1] if isinstance(last, cst.SimpleStatementLine) else last
    return isinstance(last, (cst.Return, cst.Raise, cst.Continue, cst.Break))
