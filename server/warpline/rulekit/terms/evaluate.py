"""Converts expressions to terms, with the names bound at that point."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any

import libcst as cst

from warpline.rulekit.terms.calls import CALLS, IN_PLACE
from warpline.rulekit.terms.term import Term, Terms
from warpline.syntax.source import Source, children, is_kind

BINARY: dict[Any, Callable[[Terms, Term, Term], Term]] = {
    cst.Add: Terms.add, cst.Subtract: Terms.sub, cst.Multiply: Terms.mul, cst.Divide: Terms.div,
    cst.Power: Terms.pow, cst.MatrixMultiply: lambda made, a, b: made.make("matmul", a, b),
}  # fmt: skip
_COMPARE = {
    cst.Equal: "eq", cst.NotEqual: "ne", cst.LessThan: "lt", cst.GreaterThan: "gt", cst.LessThanEqual: "le",
    cst.GreaterThanEqual: "ge", cst.Is: "is", cst.IsNot: "is_not",
}  # fmt: skip
_CONSTANTS: dict[str, Hashable] = {
    "math.pi": math.pi, "torch.pi": math.pi, "numpy.pi": math.pi, "math.e": math.e, "math.inf": math.inf,
    "torch.inf": math.inf, "numpy.inf": math.inf, "True": True, "False": False, "None": None,
}  # fmt: skip
#: Built-in functions without effect.
_PLAIN = {"len", "int", "min", "max", "abs", "isinstance"}
_OTHERS = ("math", "numpy")
_NAMESPACES = ("torch.", *(f"{one}." for one in _OTHERS))


def descend(node: cst.CSTNode, *types: Any) -> Iterator[Any]:
    """``node`` and what is inside it, of ``types``, in the order of the text."""
    waiting = [node]
    while waiting:
        found = waiting.pop()
        if is_kind(type(found), types):
            yield found
        waiting.extend(reversed(tuple(children(found))))


def names_in(node: cst.CSTNode) -> set[str]:
    """The names in ``node``, those of attributes and keywords among them."""
    return {name.value for name in descend(node, cst.Name)}


class Evaluator:
    """Gives terms; ``env`` holds the names as they are now. Calls that it does not know are fresh.

    ``helpers``: functions by how they are called (``self._norm``). Their calls are what they return.
    ``named``: parameters and attributes (``self.eps``) that stand for numbers."""

    def __init__(
        self,
        source: Source,
        members: dict[str, cst.Call],
        function: cst.FunctionDef,
        helpers: Mapping[str, cst.FunctionDef] | None = None,
        named: tuple[tuple[str, float], ...] = (),
    ) -> None:
        self.source = source
        self.made = Terms()
        self.helpers = helpers or {}
        self.inlined: dict[cst.Call, cst.FunctionDef] = {}  # calls of helpers that were followed
        self._numbers: dict[str, Term | None] = {one: Term("const", (), number) for one, number in named}
        #: Numbers that there is a name for.
        self.named = {number: one for one, number in self._numbers.items() if number is not None}
        self._within = [function]
        self.env: dict[str, Term] = {}
        self.terms: dict[cst.BaseExpression, Term] = {}
        self.written: dict[Term, tuple[cst.BaseExpression, dict[str, Term]]] = {}  # where it is first
        self.unknown: set[cst.CSTNode] = set()  # calls that may do anything
        self.members = members
        # An attribute that the function itself assigns is not one value.
        self.stored = {
            target.target.attr.value
            for target in descend(function, cst.AssignTarget)
            if isinstance(target.target, cst.Attribute)
        }

    def bind_fresh(self, name: str) -> None:
        """Give the name an unknown value from here on."""
        self.env[name] = self.made.fresh("name", value=name)

    def bind_parameter(self, name: str) -> None:
        """The same, or the number that it is known to stand for."""
        self.env[name] = self._numbers.get(name) or self.made.fresh("name", value=name)

    def term(self, node: cst.BaseExpression) -> Term:
        """What an expression computes. The same term for the same expression, however it is written."""
        term = self.terms[node] = self._evaluate(node)
        if term not in self.written:
            self.written[term] = (node, dict(self.env))
        return term

    def _evaluate(self, node: cst.BaseExpression) -> Term:
        made = self.made
        match node:
            case cst.Integer() | cst.Float() | cst.SimpleString():
                return made.const(node.evaluated_value)
            case cst.Ellipsis():
                return made.const(...)
            case cst.Name():
                return self._name(node)
            case cst.BinaryOperation():
                left, right = self.term(node.left), self.term(node.right)
                make = BINARY.get(type(node.operator))
                return (
                    make(made, left, right) if make else made.make(type(node.operator).__name__, left, right)
                )
            case cst.UnaryOperation():
                inner = self.term(node.expression)
                if isinstance(node.operator, cst.Minus):
                    return made.neg(inner)
                return inner if isinstance(node.operator, cst.Plus) else made.make("not", inner)
            case cst.Comparison(comparisons=[one]) if type(one.operator) in _COMPARE:
                return made.make(
                    _COMPARE[type(one.operator)], self.term(node.left), self.term(one.comparator)
                )
            case cst.IfExp():
                return self._either(node)
            case cst.Tuple() | cst.List() if all(isinstance(item, cst.Element) for item in node.elements):
                return made.make("tuple", *(self.term(item.value) for item in node.elements))
            case cst.Attribute():
                return self._attribute(node)
            case cst.Call():
                return self._call(node)
            case cst.Subscript():
                return self._subscript(node)
        for child in children(node):
            if isinstance(child, cst.BaseExpression) and not isinstance(node, cst.Lambda):
                self.term(child)
        return made.fresh("opaque")

    def _either(self, node: cst.IfExp) -> Term:
        test = self.term(node.test)
        if test.op == "const":
            return self.term(node.body if test.value else node.orelse)
        return self.made.make("if", test, self.term(node.body), self.term(node.orelse))

    def _name(self, node: cst.Name) -> Term:
        if node.value in self.env:
            return self.env[node.value]
        return self._number(node.value) or self._global(self.source.name(node))

    def _number(self, name: str) -> Term | None:
        """The number that the file gives ``name``, once and to no other purpose: a term of its own, which is
        spelled by that name."""
        if name not in self._numbers:
            self._numbers[name] = None
            value = self.source.constant(name)
            number = self._outside().term(value).number if value is not None else None
            if number is not None:
                self._numbers[name] = found = Term("const", (), number)
                self.named[found] = name
        return self._numbers[name]

    def _outside(self) -> Evaluator:
        """One for what is written outside the function."""
        made = Evaluator(self.source, {}, self._within[0])
        made._numbers = self._numbers
        return made

    def _global(self, full: str) -> Term:
        return (
            self.made.const(_CONSTANTS[full]) if full in _CONSTANTS else self.made.make("global", value=full)
        )

    def _imported(self, node: cst.BaseExpression) -> str | None:
        """The dotted name of something in a module; None for what hangs on a local name."""
        full = self.source.name(node)
        root = node
        while isinstance(root, cst.Attribute):
            root = root.value
        local = isinstance(root, cst.Name) and (
            root.value in self.env or root.value == full.split(".")[0] == "self"
        )
        return full if full and not local else None

    def _attribute(self, node: cst.Attribute) -> Term:
        full = self._imported(node)
        if full is not None:
            return self._global(full)
        base, name = self.term(node.value), node.attr.value
        if name in ("mT", "T"):
            return self.made.make("transpose", base, value=(-2, -1))
        number = self._numbers.get(self.source.code(node)) if name not in self.stored else None
        if number is not None:
            return number
        return (
            self.made.fresh("attr", base, value=name)
            if name in self.stored
            else self.made.make("attr", base, value=name)
        )

    def _subscript(self, node: cst.Subscript) -> Term:
        base = self.term(node.value)
        parts = [self._index(element.slice) for element in node.slice]
        of_shape = (base.op, base.value) in (("attr", "shape"), ("size", None))
        if of_shape and len(parts) == 1 and parts[0].op == "const" and isinstance(parts[0].value, int):
            return self.made.make("size", base.args[0], value=parts[0].value)
        if (
            parts
            and parts[-1] is self.made.const(None)
            and all(part is self.made.const(...) for part in parts[:-1])
        ):
            return CALLS["unsqueeze"](self.made, [base, self.made.const(-1)], {}) or self.made.fresh("opaque")
        return self.made.make("index", base, *parts)

    def _index(self, part: cst.BaseSlice) -> Term:
        if isinstance(part, cst.Index):
            return self.term(part.value)
        assert isinstance(part, cst.Slice)
        ends = (
            self.term(end) if end is not None else self.made.const(None)
            for end in (part.lower, part.upper, part.step)
        )
        return self.made.make("slice", *ends)

    def chosen(self, node: cst.Subscript) -> Term | None:
        """Which entries ``tensor[…, rows, columns]`` are, as a mask, if these are a triangle's indices; else
        None. ``rank``: the dimensions that the tensor must have for it, where the text counts them."""
        parts = [self._index(element.slice) for element in node.slice]
        at = parts[-1].args[0] if len(parts) > 1 and parts[-1].op == "index" else self.made.const(None)
        both = [self.made.make("index", at, self.made.const(side)) for side in (0, 1)]
        offset = at.args[2].number if at.op == "triu_indices" else None
        rest, whole = parts[:-2], self.made.make("slice", *[self.made.const(None)] * 3)
        counted = all(part is whole for part in rest)
        if offset is None or parts[-2:] != both or not (counted or rest == [self.made.const(...)]):
            return None
        value = (("diagonal", int(offset)), *((("rank", len(parts)),) if counted else ()))
        return self.made.make("triu", self.made.make("ones", *at.args[:2]), value=value)

    # -- calls -------------------------------------------------------------------------------

    def _call(self, node: cst.Call) -> Term:
        values = [self.term(arg.value) for arg in node.args]
        if not any(arg.star for arg in node.args):
            args = [value for value, arg in zip(values, node.args, strict=True) if arg.keyword is None]
            keywords = {
                arg.keyword.value: value for value, arg in zip(values, node.args, strict=True) if arg.keyword
            }
            try:
                known = self._known(node.func, args, keywords)
            except (ValueError, IndexError, KeyError):  # arguments that the table does not know
                known = None
            if known is None:
                known = self._helped(node, args, keywords)
            if known is not None:
                return known
        if isinstance(node.func, cst.Attribute) and self._imported(node.func) is None:
            self.term(node.func.value)
        self.unknown.add(node)
        return self.made.fresh("call", *values, value=self.source.name(node.func))

    def _known(self, func: cst.BaseExpression, args: list[Term], keywords: dict[str, Term]) -> Term | None:
        full = self._imported(func)
        if full is not None:
            if full == "torch.tensor" and len(args) == 1 and keywords.keys() <= {"dtype", "device"}:
                return args[0] if args[0].number is not None else self.made.make("tensor", args[0])
            if full == "float" and len(args) == 1 and isinstance(args[0].value, str):
                return self.made.const(float(args[0].value))
            if full in _PLAIN and not keywords:
                return self.made.make(full, *args)
            space, _, name = full.rpartition(".")
            # NumPy's functions make arrays of its own, and those of `math` numbers: a root may be a scale.
            own = space in _OTHERS and name != "sqrt" and any(arg.number is None for arg in args)
            known = CALLS.get(name) if full.startswith(_NAMESPACES) and not own else None
            return known(self.made, args, keywords) if known else None
        if not isinstance(func, cst.Attribute):
            return None
        name = func.attr.value
        if isinstance(func.value, cst.Name) and func.value.value == "self":
            member = self.members.get(name)
            return self._module_call(func, member, args) if member and not keywords else None
        known = CALLS.get(IN_PLACE.get(name, name))
        return known(self.made, [self.term(func.value), *args], keywords) if known else None

    def _helped(self, node: cst.Call, args: list[Term], keywords: dict[str, Term]) -> Term | None:
        """What a helper gives that ``node`` calls: one that only assigns plain names and returns. None for
        others, and where it calls what may do anything."""
        name = self.source.code(node.func)
        helper = self.helpers.get(name)
        if helper is None or helper in self._within:
            return None
        if name.startswith("self."):
            args = [self.env["self"], *args] if "self" in self.env else []
        names = [param.name.value for param in helper.params.params]
        given = dict(zip(names, args, strict=False)) | keywords
        if len(given) != len(args) + len(keywords) or given.keys() != set(names):
            return None
        outer, unknown = self.env, set(self.unknown)
        self.env = given
        self._within.append(helper)
        found = self._returned(helper)
        self._within.pop()
        self.env = outer
        if found is None or self.unknown != unknown:
            self.unknown = unknown
            return None
        self.inlined[node] = helper
        return found

    def _returned(self, helper: cst.FunctionDef) -> Term | None:
        for statement in helper.body.body:
            small = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) else statement
            match small:
                case cst.Return(value=value) if value is not None:
                    return self.term(value)
                case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))], value=value):
                    self.env[name] = self.term(value)
                case cst.Expr(value=cst.SimpleString()):
                    pass
                case _:
                    return None
        return None

    def _module_call(self, func: cst.Attribute, member: cst.Call, args: list[Term]) -> Term | None:
        """``self.softmax(x)`` where ``self.softmax = nn.Softmax(dim=-1)``."""
        kind = self.source.name(member.func).rpartition(".")[2]
        if len(args) != 1:
            return None
        if kind in ("Softmax", "LogSoftmax"):
            value = self.source.passed(member, "dim", 0)
            name = "softmax" if kind == "Softmax" else "log_softmax"
            return self.made.make(name, args[0], value=value) if isinstance(value, int) else None
        if kind == "Dropout":
            module = self.term(func)
            settings = (self.made.make("attr", module, value=name) for name in ("p", "training"))
            return self.made.make("dropout", args[0], *settings)
        if kind in ("ReLU", "Sigmoid", "Tanh") or (kind == "Softplus" and not member.args):
            return self.made.make(kind.lower(), args[0])
        return args[0] if kind == "Identity" else None


def module_members(owner: cst.ClassDef) -> dict[str, cst.Call]:
    """``self.name = Something(...)`` of a class, by name; a name assigned twice is left out."""
    found: dict[str, list[cst.BaseExpression]] = {}
    for node in descend(owner, cst.Assign, cst.AnnAssign):
        targets = [item.target for item in node.targets] if isinstance(node, cst.Assign) else [node.target]
        for target in targets:
            if (
                isinstance(target, cst.Attribute)
                and isinstance(target.value, cst.Name)
                and target.value.value == "self"
            ):
                found.setdefault(target.attr.value, []).append(node.value or target)
    return {
        name: values[0]
        for name, values in found.items()
        if len(values) == 1 and isinstance(values[0], cst.Call)
    }
