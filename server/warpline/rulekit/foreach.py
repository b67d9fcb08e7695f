"""The edit that makes a loop of updates of tensors one call of ``torch._foreach_*`` for each operation.

The loop stays, up to its arithmetic, and only collects the tensors. All tensors then get the first operation
before any gets the second. That gives the same numbers where no round touches what another one changes, and
the recorded step has to show that: it has the same operators for each round, and which tensors they changed.
"""

from __future__ import annotations

import keyword
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

import libcst as cst

from warpline.model.report import Fix
from warpline.rulekit.context import Context
from warpline.rulekit.foreach_record import ADVICE, Operation, alike, check_rounds
from warpline.rulekit.origins import assignments
from warpline.rulekit.rounds import is_read_outside
from warpline.rulekit.terms import descend, names_in
from warpline.syntax.edits import Edits, Refused
from warpline.syntax.source import NOT_LITERAL, Source, alone, called_name, only_target
from warpline.text.lines import lines_of

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
_OPERATORS: dict[type[cst.CSTNode], str] = {
    cst.Add: "add", cst.Subtract: "sub", cst.Multiply: "mul", cst.Divide: "div", cst.Power: "pow",
    cst.AddAssign: "add", cst.SubtractAssign: "sub", cst.MultiplyAssign: "mul", cst.DivideAssign: "div",
}  # fmt: skip
#: These round once, or not at all: the same in a kernel for lists. What multiplies and adds rounds once or
#: twice, as the compiler of that kernel chose.
_EXACT = {
    "clone",
    "mul",
    "copy",
    "zero",
    "sign",
    "abs",
    "neg",
    "maximum",
    "minimum",
    "clamp_min",
    "clamp_max",
    "sqrt",
}
_ASKS = {"len", "isinstance", "is_tensor", "is_floating_point", "startswith", "endswith", "dim"}
_OF_NUMBERS = ("float", "int", "abs", "min", "max", "math.sqrt", "math.pow", "math.exp", "math.log")
_FIRST_VERSION = (2, 1)
_MAKES = {"zeros_like", "clone", "detach", "ones_like"}

_OTHER = "the loop does something that has no form for lists of tensors: `{}`"


@dataclass
class Written:
    """What the round after its beginning is written as, for lists."""

    lists: dict[str, str] = field(default_factory=dict)  # code of a tensor of the round: its list's name
    made: dict[str, str] = field(default_factory=dict)  # the round's own names for tensors: the lists' names
    operations: list[Operation] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    new: bool = False  # whether tensors are made
    rounded: bool = False  # whether results are rounded otherwise


def over_lists(context: Context, source: Source, line: int) -> Fix:
    """One call for all tensors in place of each operation of the innermost loop at ``line``. Raises Refused
    where that might give other numbers, or is no arithmetic on lists."""
    loops = source.loops_at(line)
    if not loops or not isinstance(loops[0], cst.For):
        raise Refused(ADVICE)
    if not has_lists(context):
        raise Refused("this version of torch has not all operations for lists of tensors")
    return Loop(context, source, loops[0]).fix()


def has_lists(context: Context) -> bool:
    """Whether the run's version of torch has all operations for lists of tensors."""
    return context.torch_version >= _FIRST_VERSION


class Loop:
    """A ``for`` statement: ``start`` finds a round's tensors, ``body`` is the arithmetic."""

    def __init__(self, context: Context, source: Source, loop: cst.For) -> None:
        self.begin(context, source)
        self.loop = loop
        text = source.code(loop)
        if (
            loop.orelse is not None
            or loop.asynchronous is not None
            or '"""' in text
            or "'''" in text
            or not isinstance(loop.body, cst.IndentedBlock)
        ):
            raise Refused(ADVICE)
        self.names |= names_in(loop.target)
        if any(True for _ in descend(loop.target, cst.Attribute, cst.Subscript, cst.StarredElement)):
            raise Refused(ADVICE)
        statements = list(loop.body.body)
        while statements:
            while statements and self._finds(statements[0]):
                statements.pop(0)
            inside = self._chosen(statements)
            if inside is None:
                break
            statements = inside
        self.body = statements
        if not self.body:
            raise Refused(ADVICE)

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

    # -- the beginning of a round ---------------------------------------------------------------

    def _finds(self, statement: cst.CSTNode) -> bool:
        """Whether a statement only looks up what a round works on, or leaves the round out. The names that it
        binds are the round's from then on."""
        if isinstance(statement, cst.If):
            if statement.orelse is not None or not self._asks(statement.test):
                return False
            inner = [
                small
                for line in statement.body.body
                for small in (line.body if isinstance(line, cst.SimpleStatementLine) else (line,))
            ]
            return all(isinstance(one, cst.Continue) or self._begins(one) for one in inner)
        assign = alone(statement)
        if isinstance(assign, cst.Assert):
            return self._asks(assign.test)
        if only_target(assign) is None:
            return False
        pairs = list(assignments(self.source, assign))
        if not all(isinstance(one, cst.Name) and self.path(two) for one, two in pairs):
            return False
        self.names |= {name for one, two in pairs if self.own(two) for name in self._named(one)}
        return True

    def _chosen(self, statements: list[cst.BaseStatement]) -> list[cst.BaseStatement] | None:
        """What is done for some of the tensors, where that is all that is left of a round: ``if p.grad is not
        None:``."""
        one = statements[0] if len(statements) == 1 else None
        block = one.body if isinstance(one, cst.If) and one.orelse is None and self._asks(one.test) else None
        return list(block.body) if isinstance(block, cst.IndentedBlock) else None

    def _asks(self, test: cst.BaseExpression) -> bool:
        """Whether a condition asks for nothing that a tensor holds."""
        calls: Iterable[cst.Call] = descend(test, cst.Call)
        return all(called_name(call) in _ASKS for call in calls)

    def _begins(self, statement: cst.CSTNode) -> bool:
        """Whether it gives a tensor's state its first value, made of that tensor alone."""
        kept = isinstance(only_target(statement), (cst.Subscript, cst.Attribute))
        if not isinstance(statement, cst.Assign) or not kept:
            return False
        return self.source.literal(statement.value) is not NOT_LITERAL or self._first(statement.value)

    def _first(self, node: cst.BaseExpression) -> bool:
        """``torch.zeros_like(p)``, ``p.detach().clone()``: a copy of the tensor, or one of its size."""
        if not isinstance(node, cst.Call):
            return self.path(node)
        if called_name(node) not in _MAKES:
            return False
        given = [one.value for one in node.args if one.keyword is None]
        if isinstance(node.func, cst.Attribute) and not self.source.name(node.func).startswith("torch."):
            given.append(node.func.value)
        return all(map(self._first, given)) and any(map(self.own, given))

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

    # -- its arithmetic -------------------------------------------------------------------------

    def own(self, node: cst.CSTNode) -> bool:
        """Whether it is something else in each round."""
        return bool(self._named(node) & (self.names | set(self.written.made)))

    def _other(self, node: cst.CSTNode) -> Refused:
        return Refused(_OTHER.format(self.source.code(node)))

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

    def _tensors(self, node: cst.BaseExpression, *, changes: bool = False) -> str | None:
        """The code of a list of what ``node`` is in each round; None where it is no tensor of a round.
        ``changes``: nothing is computed before it, so it may change tensors."""
        if isinstance(node, cst.Name) and node.value in self.written.made:
            return self.written.made[node.value]
        if not self.own(node):
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
        if isinstance(node, cst.BinaryOperation) and type(node.operator) in _OPERATORS:
            name = _OPERATORS[type(node.operator)]
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
        if name in ("clone", "detach") and not arguments:
            first = self._tensors(called.value, changes=changes)
            if first is None:
                raise self._other(call)
            if name == "detach":  # outside of autograd it is the same
                return first
            self.written.operations.append(Operation("clone", 1, False, self.lines))
            return f"[one.clone() for one in {first}]"
        if self.source.name(called).startswith("torch.") and self.source.name(called).count(".") == 1:
            receiver = arguments.pop(0).value if arguments and arguments[0].keyword is None else None
        else:
            receiver = called.value
        short = name.removesuffix("_")
        first = self._tensors(receiver, changes=changes) if receiver is not None else None
        in_place = name.endswith("_")
        if first is None or short not in _FORMS or (in_place and not changes):
            raise self._other(call)
        _, names, number = _FORMS[short]
        passed = self.source.arguments(call.with_changes(args=arguments), names)
        if passed is None or not set(names) <= set(passed) <= {*names, *([number] if number else [])}:
            raise self._other(call)
        given = {key: arg.value for key, arg in passed.items()}
        extra = f", {number}={self.number(given[number])}" if number in given else ""
        rest = [(self._tensors(given[key]), given[key]) for key in names]
        average = self._average(receiver, given["src"]) if short == "copy" and in_place else None
        if average is not None and alike(self.context, self.source.path, self.lines):
            theirs, share = average
            self.written.operations.append(Operation("copy", 2, False, self.lines))
            self.written.rounded = True
            lists = [first, self.listed(theirs), self.number(share)]
            self.written.lines.append(self._call("lerp_", lists, extra))
            return first
        return self._made(short, first, rest, extra, in_place=in_place)

    def _average(
        self, mine: cst.BaseExpression | None, value: cst.BaseExpression
    ) -> tuple[cst.BaseExpression, cst.BaseExpression] | None:
        """A tensor of the round and its share, where ``value`` is the average of it and ``mine``."""
        if not isinstance(value, cst.BinaryOperation) or not isinstance(value.operator, cst.Add):
            return None
        sides = [self._weighted(value.left), self._weighted(value.right)]
        for kept, new in (sides, sides[::-1]):
            if kept is None or new is None or mine is None or not self.path(new[0]):
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
        given = [tensors if tensors is not None else self.number(node) for tensors, node in rest]
        self.written.operations.append(Operation(name, lists, bool(extra), self.lines))
        if in_place:
            if not first.isidentifier():
                first = self._held(first)
            self.written.lines.append(self._call(f"{name}_", [first, *given], extra))
            return first
        if name in _IN_PLACE_ONLY:
            raise Refused(_OTHER.format(name))
        self.written.new = True
        return self._call(name, [first, *given], extra)

    def _call(self, name: str, arguments: list[str], extra: str) -> str:
        return f"{self.module}._foreach_{name}({', '.join(arguments)}{extra})"

    def _held(self, code: str) -> str:
        """A name for the list that ``code`` makes."""
        name = self._fresh(self.hint)
        self.written.lines.append(f"{name} = {code}")
        return name

    def statement(self, statement: cst.CSTNode) -> None:
        """Write a statement of a round for lists. Raises Refused."""
        self.hint, self.lines = "result", self.source.extent(statement)
        small = alone(statement)
        target = only_target(small)
        if isinstance(small, cst.Expr) and isinstance(small.value, cst.Call):
            before = len(self.written.lines)
            self._computed(small.value, changes=True)
            if len(self.written.lines) == before:
                raise self._other(small)
        elif isinstance(small, cst.AugAssign) and type(small.operator) in _OPERATORS:
            name = _OPERATORS[type(small.operator)]
            first = self._tensors(small.target)
            if first is None:
                raise Refused("a round needs what the one before computed")
            second = self._tensors(small.value)
            self._made(name, first, [(second, small.value)], "", in_place=True)
        elif isinstance(small, cst.Assign) and isinstance(target, cst.Name):
            name = self.hint = target.value
            code = self._tensors(small.value, changes=True)
            if code is None:
                raise self._other(small)
            if not code.isidentifier():
                known = self.written.made.get(name) or self.written.lists.get(name)
                others = (*self.written.made.items(), *self.written.lists.items())
                if known in [held for other, held in others if other != name]:
                    known = None
                if known is None and self.sometimes:
                    raise self._other(small)
                code, made = known or self._fresh(name), code
                self.written.lines.append(f"{code} = {made}")
            self.written.made[name] = code
        elif isinstance(statement, cst.If):
            self._branch(statement)
        elif isinstance(small, cst.Assign) and target is not None and statement is self.body[-1]:
            if not self.own(target) or not self.path(target):
                raise self._line(statement)
            self._store(target, small.value)
        else:
            raise self._line(statement)

    def _line(self, statement: cst.CSTNode) -> Refused:
        return Refused(_OTHER.format(self.source.lines[self.source.line(statement) - 1].strip()))

    def _branch(self, statement: cst.If) -> None:
        """``if decay != 0:``, which is the same for all tensors."""
        if (
            statement.orelse is not None
            or not isinstance(statement.body, cst.IndentedBlock)
            or self.sometimes
            or self.own(statement.test)
        ):
            raise self._line(statement)
        test, before, self.sometimes = self.number(statement.test), len(self.written.lines), True
        for inner in statement.body.body:
            self.statement(inner)
        self.sometimes = False
        step = self.source.module.default_indent
        self.written.lines[before:] = [f"if {test}:", *(step + one for one in self.written.lines[before:])]

    def _store(self, target: cst.BaseExpression, value: cst.BaseExpression) -> None:
        """``self.kept[name] = new`` at the end of a round: once all are computed, in a loop of its own."""
        self.hint = "value"
        code, named = self._tensors(value, changes=True), sorted(self._named(target) & self.names)
        refused = _OTHER.format(self.source.code(target))
        if code is None or self._named(target) & set(self.written.made) or any(map(self._read_after, named)):
            raise Refused(refused)
        held = code if code.isidentifier() else self._held(code)
        nodes = {name.value: name for name in descend(target, cst.Name) if name.value in named}
        lists = [self.listed(nodes[name]) for name in named]
        new = next((one for one in ("new", "value", "made") if one not in self.taken), None)
        if new is None:
            raise Refused(refused)
        self.written.lines += [
            f"for {', '.join([*named, new])} in zip({', '.join([*lists, held])}):",
            f"{self.source.module.default_indent}{self.source.code(target)} = {new}",
        ]

    def _read_after(self, name: str) -> bool:
        """Whether a name of the round's may be read where the loop has ended."""
        return is_read_outside(self.source, name, self.loop)

    # -- the edit -------------------------------------------------------------------------------

    def fix(self) -> Fix:
        """The calls for lists in place of the arithmetic. Raises Refused."""
        edits = Edits(self.source)
        self.module = edits.add_import("torch", "import torch")
        block: list[str] = []
        for statement in self.body:
            before = len(self.written.lines)
            self.statement(statement)
            block += _comments(statement)
            block += self.written.lines[before:]
            note = _trailing(statement)
            if note and len(self.written.lines) > before and statement is not self.body[-1]:
                block[-1] += f"  {note}"
        for name in self.written.made:
            if self._read_after(name):
                raise Refused(f"`{name}` is read after the loop")
        check_rounds(self.context, self.source.path, self.written.operations)
        self.collect(edits, block)
        return self.result(edits)

    def result(self, edits: Edits) -> Fix:
        """The fix, safe where the operations of ``written`` round as they did before."""
        operations = self.written.operations
        exact = all(
            one.name in _EXACT or (one.name in ("add", "sub") and not one.alpha) for one in operations
        )
        safe = (exact or not self.context.on_gpu) and not self.written.rounded
        return edits.fix("Update all tensors of the loop with one call each", "safe" if safe else "unsafe")

    def collect(self, edits: Edits, block: list[str]) -> None:
        """Let the loop only collect the tensors of ``written``, and put ``block`` behind it."""
        source, loop = self.source, self.loop
        first = source.line(self.body[0])
        outer = source.indentation(source.line(loop))
        inner = source.indentation(first).removeprefix(outer)
        at = (source.line(loop), len(outer))
        end = (first - 1, len(source.lines[first - 2]))
        head = lines_of(source.slice(at, end))
        head = [head[0], *(text.removeprefix(outer) for text in head[1:])]
        lead = [one.comment.value for one in _leading(self.body[0]) if one.comment is not None]
        # Comments above the arithmetic go there with it.
        while lead and head and head[-1].strip() == lead[-1]:
            head.pop()
            lead.pop()
        while head and not head[-1].strip():
            head.pop()
        edits.replace_statement(loop, "\n".join(self.collected(head, inner, block)))
        self._let_go(edits, block)

    def collected(self, head: list[str], inner: str, block: list[str]) -> list[str]:
        """The lines of a loop that begins with ``head``, only collects the tensors, and has ``block`` behind
        it."""
        names, step = list(self.written.lists.values()), self.source.module.default_indent
        return [
            f"{', '.join(names)} = {', '.join(['[]'] * len(names))}",
            *head,
            *(inner + text for text in self.keeping()),
            f"if {names[0]}:",
            *(step + text for text in block),
        ]

    def keeping(self) -> list[str]:
        """What a round does to collect its tensors."""
        return [f"{held}.append({code})" for code, held in self.written.lists.items()]

    def _let_go(self, edits: Edits, block: list[str]) -> None:
        """Lists that are there for longer than the loop would keep gradients from being freed."""
        source, loop = self.source, self.loop
        scope = source.enclosing(loop, cst.FunctionDef)
        after = [one for one in source.block(loop) if source.line(one) > source.line(loop)]
        if scope is not None and source.parent(source.parent(loop) or loop) is scope and not after:
            return
        names = list(self.written.lists.values())
        names += [
            line.split(" = ")[0]
            for line in block
            if " = " in line and not line.startswith("#") and line.split(" = ")[0].isidentifier()
        ]
        edits.insert_after(loop, f"del {', '.join(dict.fromkeys(names))}")


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


def _leading(statement: cst.CSTNode) -> list[cst.EmptyLine]:
    return list(getattr(statement, "leading_lines", ()))


def _comments(statement: cst.CSTNode) -> list[str]:
    return [line.comment.value for line in _leading(statement) if line.comment is not None]


def _trailing(statement: cst.CSTNode) -> str:
    space = getattr(statement, "trailing_whitespace", None)
    comment = getattr(space, "comment", None)
    return str(comment.value) if comment is not None else ""
