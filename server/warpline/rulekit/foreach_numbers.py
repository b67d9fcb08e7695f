"""Numbers that a round of a loop gives for its tensors, such as norms: of all tensors at once.

Where they are read (``p.grad.norm().item()``), what a round does with them stays a loop, behind one read for
all.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeGuard

import libcst as cst

from warpline.rulekit.foreach_arithmetic import OTHER, Arithmetic, comments, trailing
from warpline.rulekit.foreach_record import READ, SUMMED, Operation
from warpline.rulekit.terms import descend
from warpline.syntax.edits import Refused
from warpline.syntax.source import alone, is_method, only_target, receiver
from warpline.text.lines import lines_of

#: What cannot stand in a loop of its own, or is run elsewhere.
_NOT_APART = (
    cst.Continue, cst.Break, cst.Return, cst.Yield, cst.Await, cst.Lambda, cst.FunctionDef, cst.ClassDef,
)  # fmt: skip
_NUMBERS = ("norm", "number", "value")


class Numbers(Arithmetic):
    def reads(self, statement: cst.CSTNode) -> bool:
        """Whether a statement reads a number of a round's tensor."""
        calls = descend(statement, cst.Call)
        return any(self._reads(call) for call in calls)

    def _reads(self, call: cst.CSTNode) -> TypeGuard[cst.Call]:
        read = receiver(call)
        return is_method(call, "item") and not call.args and read is not None and self.own(read)

    def read_at_once(self, statements: Sequence[cst.BaseStatement], head: str) -> None:
        """Write the end of a round, which begins with ``head``, as a loop over numbers. Raises Refused where
        it works on tensors, or on what the beginning of the next round looks up."""
        values: dict[str, str] = {}  # code of the list of numbers: their name
        text = []
        for statement in statements:
            self.lines = self.source.extent(statement)
            if any(True for _ in descend(statement, *_NOT_APART)):
                raise self._other(statement)
            code = self._with_names(statement, values)
            note = trailing(statement) if statement is statements[-1] else ""  # which stays where it is
            text.append(code.rstrip().removesuffix(note))
            self._apart(statement, text[-1], head)
        for comment in comments(statements[0]):  # which stand above the loop
            text[0] = text[0].replace(comment, "", 1)
        names = {name.value: name for one in statements for name in descend(one, cst.Name)}
        own = [name for name in sorted(self.names) if any(_holds(one, name) for one in text)]
        if any(_holds(code, name) for name in own for code in self.written.lists):
            raise self._other(statements[0])
        held = [self.listed(names[name]) for name in own]
        held += [f"{self.module}.stack({code}).tolist()" for code in values]
        over = f"zip({', '.join(held)})" if len(held) > 1 else held[0]
        self.written.lines.append(f"for {', '.join([*own, *values.values()])} in {over}:")
        step = self.source.module.default_indent
        self.written.lines += [step + line for one in text for line in lines_of(one) if line.strip()]

    def _with_names(self, statement: cst.BaseStatement, values: dict[str, str]) -> str:
        """A statement's code with names for the numbers that it reads."""
        changed: cst.CSTNode = statement
        for call in list(descend(statement, cst.Call)):
            if not self._reads(call):
                continue
            read = receiver(call)
            assert read is not None
            code = self._tensors(read)
            if code is None:
                raise self._other(call)
            if not code.isidentifier():
                code = self._held(code)
            if code not in values:
                values[code] = read.value if isinstance(read, cst.Name) else self._free()
            self.written.operations.append(Operation(READ, 1, False, self.lines))
            changed = changed.deep_replace(call, cst.Name(values[code]))
        others = {name.value for name in descend(changed, cst.Name)} & set(self.written.made)
        if others - set(values.values()):
            raise self._other(statement)
        return self.source.module.code_for_node(changed)

    def _free(self) -> str:
        for name in _NUMBERS:
            if name not in self.taken:
                self.taken.add(name)
                return name
        raise Refused("there is no free name for its numbers")

    def _apart(self, statement: cst.BaseStatement, text: str, head: str) -> None:
        """Raises Refused where it may change what ``head`` looks up."""
        targets = [one.target for one in descend(statement, cst.AssignTarget, cst.AugAssign)]
        targets += [one for call in descend(statement, cst.Call) if (one := receiver(call)) is not None]
        for target in targets:
            while isinstance(target, cst.Subscript):
                target = target.value
            if self.source.code(target) in text and _holds(head, self.source.code(target)):
                raise self._other(statement)

    def collects(self, statement: cst.CSTNode, loop: str) -> bool:
        """Write a statement that adds a number of a round to a sum, or appends it to a list. False where it
        is none. ``loop``: its code. Raises Refused."""
        small = alone(statement)
        call = small.value if isinstance(small, cst.Expr) else None
        target, value = _added(small)
        into, given = receiver(call), None
        if isinstance(call, cst.Call) and is_method(call, "append") and len(call.args) == 1:
            given = call.args[0].value
        elif target is not None:
            into, given = target, value
        if into is None or given is None or self.own(into) or not self.own(given):
            return False
        name = self.source.code(into)
        often = 2 if isinstance(small, cst.Assign) else 1
        looked_up = self.path(given) and self.source.code(given) not in self.written.made
        if looked_up or len(re.findall(rf"(?<![\w.]){re.escape(name)}\b", loop)) != often:
            raise Refused(OTHER.format(self.source.code(statement).strip()))
        code = self._tensors(given)
        if isinstance(call, cst.Call):
            self.written.lines.append(f"{name}.extend({code})")
            return True
        self.written.operations.append(Operation(SUMMED, 2, False, self.lines))
        self.written.rounded = True
        self.written.lines.append(f"{name} += {self.module}.stack({code}).sum()")
        return True


def _added(small: cst.CSTNode | None) -> tuple[cst.BaseExpression | None, cst.BaseExpression | None]:
    """The sum, and what is added to it."""
    if isinstance(small, cst.AugAssign) and isinstance(small.operator, cst.AddAssign):
        return small.target, small.value
    target = only_target(small)
    value = small.value if isinstance(small, cst.Assign) else None
    if target is not None and isinstance(value, cst.BinaryOperation) and isinstance(value.operator, cst.Add):
        for one, other in ((value.left, value.right), (value.right, value.left)):
            if one.deep_equals(target):
                return target, other
    return None, None


def _holds(text: str, code: str) -> bool:
    return re.search(rf"(?<![\w.]){re.escape(code)}\b", text) is not None
