"""The arithmetic of one round of a loop over tensors, written as calls of ``torch._foreach_*``."""

from __future__ import annotations

import keyword
import math
import re
from dataclasses import dataclass, field

import libcst as cst

from warpline.rulekit.context import Context
from warpline.rulekit.foreach_record import Operation, alike, multiplies_numbers
from warpline.rulekit.terms import descend
from warpline.syntax.edits import Refused
from warpline.syntax.source import Source, is_method, receiver

#: The operators that have a form for lists since torch 2.1, and what they are given: "L" a list, "N" a number
#: for all tensors, "B" either of these. A keyword for a number is allowed where one is named.
_FORMS: dict[str, tuple[str, tuple[str, ...], str]] = {
    "add": ("B", ("other",), "alpha"),
    "sub": ("B", ("other",), "alpha"),
    "mul": ("B", ("other",), ""),
    "div": ("B", ("other",), ""),
    "lerp": ("LB", ("end", "weight"), ""),
    "addcmul": ("LL", ("tensor1", "tensor2"), "value"),
    "addcdiv": ("LL", ("tensor1", "tensor2"), "value"),
    "maximum": ("L", ("other",), ""),
    "minimum": ("L", ("other",), ""),
    "clamp_min": ("N", ("min",), ""),
    "clamp_max": ("N", ("max",), ""),
    "pow": ("N", ("exponent",), ""),
    "copy": ("L", ("src",), "non_blocking"),
    **dict.fromkeys(("sqrt", "sign", "abs", "neg", "exp", "log", "reciprocal", "zero"), ("", (), "")),
}
#: Without a form that makes a new tensor.
_IN_PLACE_ONLY = {"copy", "zero"}
OPERATORS: dict[type[cst.CSTNode], str] = {
    cst.Add: "add", cst.Subtract: "sub", cst.Multiply: "mul", cst.Divide: "div", cst.Power: "pow",
    cst.AddAssign: "add", cst.SubtractAssign: "sub", cst.MultiplyAssign: "mul", cst.DivideAssign: "div",
}  # fmt: skip
_OF_NUMBERS = ("float", "int", "abs", "min", "max", "math.sqrt", "math.pow", "math.exp", "math.log")

#: Without a form for lists: called for one tensor after the other.
_EACH = ("clone", "sum", "mean", "max", "min")
_NORMS = ("torch.norm", "torch.linalg.norm", "torch.linalg.vector_norm")

OTHER = "the loop does something that has no form for lists of tensors: `{}`"


@dataclass
class Written:
    """What the round after its beginning is written as, for lists."""

    lists: dict[str, str] = field(default_factory=dict)  # code of a tensor of the round: its list's name
    made: dict[str, str] = field(default_factory=dict)  # the round's own names for tensors: the lists' names
    operations: list[Operation] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    held: list[str] = field(default_factory=list)  # names of lists that are made
    new: bool = False  # whether tensors are made
    rounded: bool = False  # whether results are rounded otherwise


class Arithmetic:
    """What a round computes. Its tensors become lists of those of all rounds."""

    def begin(self, context: Context, source: Source) -> None:
        """Nothing is written yet."""
        self.context, self.source = context, source
        self.written = Written()
        self.names: set[str] = set()
        self.taken = {name.value for name in source.nodes(cst.Name)}
        self.module = ""
        self.hint = "result"  # what the tensors that a statement makes are called
        self.lines = range(0)  # of the statement
        self.sometimes = False  # whether the statement is in a branch

    def path(self, node: cst.CSTNode) -> bool:
        """Names, attributes and entries: what is looked up and not computed."""
        if isinstance(node, cst.Name):
            return True
        if isinstance(node, cst.Attribute):
            return self.path(node.value)
        if isinstance(node, cst.Subscript):
            keys = [one.slice.value for one in node.slice if isinstance(one.slice, cst.Index)]
            return len(keys) == len(node.slice) == 1 and self.path(node.value) and self._key(keys[0])
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and not node.args:
            return node.func.attr.value == "detach" and self.path(node.func.value)
        return False

    def _key(self, node: cst.CSTNode) -> bool:
        return isinstance(node, (cst.SimpleString, cst.Integer)) or self.path(node)

    def own(self, node: cst.CSTNode) -> bool:
        """Whether it is something else in each round."""
        return bool(self._named(node) & (self.names | set(self.written.made)))

    def _other(self, node: cst.CSTNode) -> Refused:
        return Refused(OTHER.format(self.source.code(node)))

    def _named(self, node: cst.CSTNode) -> set[str]:
        return {name.value for name in descend(node, cst.Name) if self.source.is_value(name)}

    def number(self, node: cst.BaseExpression) -> str:
        """An expression that is the same for all rounds and calls no code of the user's. Raises Refused."""
        if self.own(node):
            raise Refused("a number differs from tensor to tensor")
        for one in descend(node, cst.BaseExpression):
            if isinstance(one, cst.Call) and self.source.name(one.func) not in _OF_NUMBERS:
                raise self._other(one)
            if isinstance(one, (cst.NamedExpr, cst.Lambda, cst.Await, cst.Yield)):
                raise self._other(one)
        return self.source.code(node)

    def _factor(self, node: cst.BaseExpression) -> str:
        """A number to multiply with. On a CPU each tensor would make one of its own type of it, which takes
        longer than the product of a small tensor: one is made for all."""
        if (moved := self._moved(node)) is not None:
            return f"{self.number(moved[0])}.to({self.listed(moved[1])}[0])"
        number = self.number(node)
        own_type = not self.context.on_gpu and multiplies_numbers(self.context, self.source.path, self.lines)
        return f"{self.module}.tensor({number})" if own_type else number

    def _moved(self, node: cst.BaseExpression) -> tuple[cst.BaseExpression, cst.BaseExpression] | None:
        """``(scale, p)`` of ``scale.to(p)``: a number in a tensor, in the dtype and device of ``p``."""
        if not isinstance(node, cst.Call) or not is_method(node, "to") or len(node.args) != 1:
            return None
        scale, like = receiver(node), node.args[0].value
        return (scale, like) if scale is not None and not self.own(scale) and self.path(like) else None

    def _tensors(self, node: cst.BaseExpression, *, changes: bool = False) -> str | None:
        """The code of a list of what ``node`` is in each round; None where it is no tensor of a round.
        ``changes``: nothing is computed before it, so it may change tensors."""
        if isinstance(node, cst.Name) and node.value in self.written.made:
            return self.written.made[node.value]
        if not self.own(node) or self._moved(node) is not None:
            return None
        if self.path(node):
            if self._named(node) & set(self.written.made):
                raise self._other(node)
            return self.listed(node)
        return self._computed(node, changes)

    def listed(self, node: cst.BaseExpression) -> str:
        """The name of the list that the loop makes of such tensors."""
        code = self.source.code(node)
        if code not in self.written.lists:
            self.written.lists[code] = self._fresh(_word(self.source, node))
        return self.written.lists[code]

    def _fresh(self, word: str) -> str:
        several = f"{word}_list" if word.endswith("s") else f"{word}s"
        for name in (several, f"{word}_list", f"{word}_tensors", *(f"{word}s_{one}" for one in range(2, 9))):
            if name not in self.taken and not keyword.iskeyword(name):
                self.taken.add(name)
                return name
        raise Refused("there is no free name for a list of its tensors")

    def _computed(self, node: cst.BaseExpression, changes: bool) -> str:
        """The code that computes ``node`` for all rounds. What it changes in place is a line before."""
        if isinstance(node, cst.BinaryOperation) and type(node.operator) in OPERATORS:
            name = OPERATORS[type(node.operator)]
            first, second = self._tensors(node.left), self._tensors(node.right)
            if first is None and second is not None and name in ("add", "mul"):
                return self._made(name, second, [(None, node.left)], "")
            if first is not None:
                return self._made(name, first, [(second, node.right)], "")
        if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
            first = self._tensors(node.expression)
            if first is not None:
                return self._made("neg", first, [], "")
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
            return self._called(node, node.func, changes)
        raise self._other(node)

    def _called(self, call: cst.Call, called: cst.Attribute, changes: bool) -> str:
        name = called.attr.value
        arguments = list(call.args)
        if (norm := normed(self.source, call)) is not None:
            first = self._tensors(norm[0])
            if first is None:
                raise self._other(call)
            self.written.operations.append(Operation("linalg_vector_norm", 1, False, self.lines))
            self.written.new = True
            return f"{self.module}._foreach_norm({first}{norm[1]})"
        if name in ("detach", *_EACH) and not arguments:
            first = self._tensors(called.value, changes=changes)
            if first is None:
                raise self._other(call)
            if name == "detach":  # outside of autograd it is the same
                return first
            self.written.operations.append(Operation(name, 1, False, self.lines))
            return f"[one.{name}() for one in {first}]"
        if self.source.name(called).startswith("torch.") and self.source.name(called).count(".") == 1:
            receiver = arguments.pop(0).value if arguments and arguments[0].keyword is None else None
        else:
            receiver = called.value
        short = name.removesuffix("_")
        first = self._tensors(receiver, changes=changes) if receiver is not None else None
        in_place = name.endswith("_")
        if first is not None and short in ("clamp", "clip") and in_place and changes:
            return self._clamped(call.with_changes(args=arguments), first)
        if first is None or short not in _FORMS or (in_place and not changes):
            raise self._other(call)
        _, names, number = _FORMS[short]
        passed = self.source.arguments(call.with_changes(args=arguments), names)
        if passed is None or not set(names) <= set(passed) <= {*names, *([number] if number else [])}:
            raise self._other(call)
        given = {key: arg.value for key, arg in passed.items()}
        extra = f", {number}={self.number(given[number])}" if number in given else ""
        rest = [(self._tensors(given[key]), given[key]) for key in names]
        copies = short == "copy" and in_place
        if copies and receiver is not None and self.averaged(receiver, first, given["src"], extra):
            self.written.operations.append(Operation("copy", 2, False, self.lines))
            return first
        return self._made(short, first, rest, extra, in_place=in_place)

    def _clamped(self, call: cst.Call, first: str) -> str:
        """Both bounds of ``clamp_``: one call each."""
        passed = self.source.arguments(call, ("min", "max"))
        if passed is None or not passed or not passed.keys() <= {"min", "max"}:
            raise self._other(call)
        self.written.operations.append(Operation("clamp", 1, False, self.lines))
        for key in sorted(passed, reverse=True):
            number = self.number(passed[key].value)
            self.written.lines.append(self._call(f"clamp_{key}_", [first, number], ""))
        return first

    def averaged(self, mine: cst.BaseExpression, own: str, value: cst.BaseExpression, extra: str) -> bool:
        """Whether ``value`` is an average of ``mine`` and another tensor: then it is made in ``own``."""
        average = self._average(mine, value)
        if average is None or not alike(self.context, self.source.path, self.lines):
            return False
        theirs, share = average
        self.written.rounded = True
        lists = [own, self.listed(theirs), self.number(share)]
        self.written.lines.append(self._call("lerp_", lists, extra))
        return True

    def _average(
        self, mine: cst.BaseExpression, value: cst.BaseExpression
    ) -> tuple[cst.BaseExpression, cst.BaseExpression] | None:
        """A tensor of the round and its share, where ``value`` is the average of it and ``mine``."""
        if not isinstance(value, cst.BinaryOperation) or not isinstance(value.operator, cst.Add):
            return None
        sides = [self._weighted(value.left), self._weighted(value.right)]
        for kept, new in (sides, sides[::-1]):
            if kept is None or new is None or not self.path(new[0]):
                continue
            if self._bare(kept[0]) == self._bare(mine) and self._rest(kept[1], new[1]):
                return new
        return None

    def _weighted(self, node: cst.BaseExpression) -> tuple[cst.BaseExpression, cst.BaseExpression] | None:
        """A tensor of the round, and the number that it is multiplied with."""
        if not isinstance(node, cst.BinaryOperation) or not isinstance(node.operator, cst.Multiply):
            return None
        pairs = ((node.left, node.right), (node.right, node.left))
        return next((pair for pair in pairs if self.own(pair[0]) and not self.own(pair[1])), None)

    def _bare(self, node: cst.BaseExpression) -> str:
        return re.sub(r"\.data\b|\.detach\(\)", "", self.source.code(node))

    def _rest(self, one: cst.BaseExpression, other: cst.BaseExpression) -> bool:
        """Whether two shares make a whole: ``1 - a`` and ``a``, or numbers."""
        first, second = self.source.literal(one), self.source.literal(other)
        if isinstance(first, (int, float)) and isinstance(second, (int, float)):
            return math.isclose(first + second, 1.0)
        return any(
            isinstance(left, cst.BinaryOperation)
            and isinstance(left.operator, cst.Subtract)
            and self.source.literal(left.left) == 1
            and self.source.code(left.right) == self.source.code(right)
            for left, right in ((one, other), (other, one))
        )

    def _made(
        self,
        name: str,
        first: str,
        rest: list[tuple[str | None, cst.BaseExpression]],
        extra: str,
        *,
        in_place: bool = False,
    ) -> str:
        forms = _FORMS[name][0]
        for (tensors, node), form in zip(rest, forms, strict=True):
            if (form == "L" and tensors is None) or (form == "N" and tensors is not None):
                raise self._other(node)
        lists = 1 + sum(tensors is not None for tensors, _ in rest)
        if name in ("add", "sub") and extra and lists == 1:
            raise self._other(rest[0][1])
        number = self._factor if name == "mul" else self.number
        given = [tensors if tensors is not None else number(node) for tensors, node in rest]
        self.written.operations.append(Operation(name, lists, bool(extra), self.lines))
        if in_place:
            if not first.isidentifier():
                first = self._held(first)
            self.written.lines.append(self._call(f"{name}_", [first, *given], extra))
            return first
        if name in _IN_PLACE_ONLY:
            raise Refused(OTHER.format(name))
        self.written.new = True
        return self._call(name, [first, *given], extra)

    def _call(self, name: str, arguments: list[str], extra: str) -> str:
        return f"{self.module}._foreach_{name}({', '.join(arguments)}{extra})"

    def _held(self, code: str) -> str:
        """A name for the list that ``code`` makes."""
        return self._hold(self._fresh(self.hint), code)

    def _hold(self, name: str, code: str) -> str:
        self.written.lines.append(f"{name} = {code}")
        if not self.sometimes:
            self.written.held.append(name)
        return name


def normed(source: Source, value: cst.BaseExpression) -> tuple[cst.BaseExpression, str] | None:
    """The tensor whose vector norm ``value`` is, and what else `_foreach_norm` is given."""
    if not isinstance(value, cst.Call) or not isinstance(value.func, cst.Attribute):
        return None
    args = [*value.args]
    if source.name(value.func) in _NORMS:
        tensor = args.pop(0).value if args and args[0].keyword is None and not args[0].star else None
    else:
        tensor = value.func.value if value.func.attr.value == "norm" else None
    if tensor is None or not args:
        return None if tensor is None else (tensor, "")
    word, order = args[0].keyword, source.literal(args[0].value)
    # A matrix norm of order 2, as `torch.linalg.norm(x, 2)` has it, is another one.
    another = len(args) > 1 or args[0].star or source.name(value.func) == "torch.linalg.norm"
    another = another or (word is not None and word.value not in ("p", "ord"))
    if another or isinstance(order, bool) or not isinstance(order, (int, float)):
        return None
    return tensor, "" if order == 2 else f", {order}"


def _word(source: Source, node: cst.CSTNode) -> str:
    """A name for what is looked up so: ``grad`` of ``p.grad.data``, ``mean`` of ``state["mean"]``."""
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        return _word(source, node.func.value)
    if isinstance(node, cst.Attribute):
        return _word(source, node.value) if node.attr.value == "data" else node.attr.value
    if isinstance(node, cst.Subscript):
        index = node.slice[0].slice
        key = source.literal(index.value) if isinstance(index, cst.Index) else None
        return key if isinstance(key, str) and key.isidentifier() else _word(source, node.value)
    return node.value if isinstance(node, cst.Name) else "value"


def comments(statement: cst.CSTNode) -> list[str]:
    """The comments above a statement."""
    lines = getattr(statement, "leading_lines", ())
    return [line.comment.value for line in lines if line.comment is not None]


def trailing(statement: cst.CSTNode) -> str:
    """The comment behind a statement; else ""."""
    space = getattr(statement, "trailing_whitespace", None)
    comment = getattr(space, "comment", None)
    return str(comment.value) if comment is not None else ""
