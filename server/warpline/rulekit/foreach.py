"""The edit that makes a loop of updates of tensors one call of ``torch._foreach_*`` for each operation.

The loop stays, up to its arithmetic, and only collects the tensors. All tensors then get the first operation
before any gets the second. That gives the same numbers where no round touches what another one changes, and
the recorded step has to show that: it has the same operators for each round, and which tensors they changed.
"""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from warpline.model.report import Fix
from warpline.rulekit.context import Context
from warpline.rulekit.foreach_arithmetic import OPERATORS, OTHER, comments, trailing
from warpline.rulekit.foreach_numbers import Numbers
from warpline.rulekit.foreach_record import ADVICE, check_rounds
from warpline.rulekit.origins import assignments
from warpline.rulekit.own_data import own_data
from warpline.rulekit.rounds import is_read_outside
from warpline.rulekit.terms import descend, names_in
from warpline.syntax.edits import Edits, Refused
from warpline.syntax.source import NOT_LITERAL, Source, alone, called_name, only_target
from warpline.text.lines import lines_of

#: These round once, or not at all: the same in a kernel for lists. What multiplies and adds rounds once or
#: twice, as the compiler of that kernel chose.
_EXACT = {
    "clone",
    "clamp",
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
_FIRST_VERSION = (2, 1)
_MAKES = {"zeros_like", "clone", "detach", "ones_like"}


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


class Loop(Numbers):
    """A ``for`` statement: ``start`` finds a round's tensors, ``body`` is the arithmetic."""

    def __init__(self, context: Context, source: Source, loop: cst.For) -> None:
        self.begin(context, source)
        self.loop = loop
        self.text = text = source.code(loop)
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
        if any(self.own(one) for one in descend(statement, cst.StarredElement)):
            return False
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

    # -- its arithmetic -------------------------------------------------------------------------

    def statement(self, statement: cst.CSTNode) -> None:
        """Write a statement of a round for lists. Raises Refused."""
        self.hint, self.lines = "result", self.source.extent(statement)
        small = alone(statement)
        target = only_target(small)
        if self.collects(statement, self.text):
            return
        if isinstance(small, cst.Expr) and isinstance(small.value, cst.Call):
            before = len(self.written.lines)
            self._computed(small.value, changes=True)
            if len(self.written.lines) == before:
                raise self._other(small)
        elif isinstance(small, cst.AugAssign) and type(small.operator) in OPERATORS:
            name = OPERATORS[type(small.operator)]
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
                code = self._hold(known or self._fresh(name), code)
            self.written.made[name] = code
        elif isinstance(statement, cst.If):
            self._branch(statement)
        elif isinstance(small, cst.Assign) and target is not None and statement is self.body[-1]:
            self.hint = "value"
            code = self._tensors(small.value, changes=True)
            if code is None or not self.own(target) or not self.path(target):
                raise self._line(statement)
            own = own_data(self.context, self.source, small)
            if own is None or not self.averaged(own, self.listed(own), small.value, ""):
                self.store(target, code)
        else:
            raise self._line(statement)

    def _line(self, statement: cst.CSTNode) -> Refused:
        return Refused(OTHER.format(self.source.lines[self.source.line(statement) - 1].strip()))

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

    def store(self, target: cst.BaseExpression, code: str) -> None:
        """``self.kept[name] = new`` at the end of a round: once ``code`` has computed all, in a loop of its
        own. Raises Refused."""
        named = sorted(self._named(target) & self.names)
        refused = OTHER.format(self.source.code(target))
        if self._named(target) & set(self.written.made) or any(map(self._read_after, named)):
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
        for at, statement in enumerate(self.body):
            before = len(self.written.lines)
            if reads := self.reads(statement):
                self.read_at_once(self.body[at:], "\n".join(self._head()))
            else:
                self.statement(statement)
            block += comments(statement)
            block += self.written.lines[before:]
            if reads:
                break
            note = trailing(statement)
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
        source = self.source
        outer = source.indentation(source.line(self.loop))
        inner = source.indentation(source.line(self.body[0])).removeprefix(outer)
        if self.outlives():
            held = [*self.written.lists.values(), *self.written.held]
            block = [*block, f"del {', '.join(dict.fromkeys(held))}"]
        edits.replace_statement(self.loop, "\n".join(self.collected(self._head(), inner, block)))

    def _head(self) -> list[str]:
        """The lines of the loop before its arithmetic."""
        source, loop = self.source, self.loop
        first = source.line(self.body[0])
        outer = source.indentation(source.line(loop))
        at = (source.line(loop), len(outer))
        end = (first - 1, len(source.lines[first - 2]))
        head = lines_of(source.slice(at, end))
        head = [head[0], *(text.removeprefix(outer) for text in head[1:])]
        lead = comments(self.body[0])
        # Comments above the arithmetic go there with it.
        while lead and head and head[-1].strip() == lead[-1]:
            head.pop()
            lead.pop()
        while head and not head[-1].strip():
            head.pop()
        return head

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

    def outlives(self) -> bool:
        """Whether lists would be there for longer than the loop, which keeps gradients from being freed."""
        source, loop = self.source, self.loop
        scope = source.enclosing(loop, cst.FunctionDef)
        after = [one for one in source.block(loop) if source.line(one) > source.line(loop)]
        return scope is None or source.parent(source.parent(loop) or loop) is not scope or bool(after)
