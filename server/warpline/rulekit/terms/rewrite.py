"""Converts a match to edits: writes its terms as source, and removes assignments that are no longer
needed."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence

import libcst as cst

from warpline.model.report import Fix
from warpline.rulekit.terms.evaluate import descend, names_in
from warpline.rulekit.terms.flow import Flow, Step
from warpline.rulekit.terms.term import Term
from warpline.syntax.edits import Edits, Refused
from warpline.syntax.source import DOTTED, Statement

#: Lines that edits make are not longer, where they can be broken.
_WIDTH = 100
#: Arguments that would go further than this stand one a line.
_LIMIT = 112
_NO_NAME = "a value that the call needs has no name there"


class Rewrite:
    """Puts something else for ``node``, an expression within ``step``."""

    def __init__(self, flow: Flow, step: Step, node: cst.BaseExpression | None = None) -> None:
        self.flow = flow
        self.step = step
        self.node = node if node is not None else step.expression
        self.kept: set[Step] = set()
        self.used: set[str] = set()  # names that were written
        self.removed = self._unneeded()
        self.env = self._names()

    def spell(self, term: Term) -> str:
        """Text that gives ``term`` there. Raises Refused when nothing in reach does."""
        if term.op == "const":
            return self.flow.evaluator.named.get(term, repr(term.value))
        for name, held in reversed(self.env.items()):
            if held is term:
                self.used.add(name)
                return name
        if (name_again := self._keep(term)) is not None:
            return name_again
        node, names = self.flow.evaluator.written.get(term, (None, {}))
        if node is not None and self._reads_same(node, names) and not self._calls_again(node):
            self.used |= names_in(node)
            return _one_line(self.flow.source.code(node))
        inner = [self.spell(arg) for arg in term.args]
        match term.op:
            case "attr" if isinstance(term.value, str):
                return f"{atom(inner[0])}.{term.value}"
            case "size" if isinstance(term.value, int):
                return f"{atom(inner[0])}.shape[{term.value}]"
            case "permute" if isinstance(term.value, tuple):
                return f"{atom(inner[0])}{moved(term.value)}"
            case "div" if term.args[0].number is not None:
                return f"{inner[0]} / {atom(inner[1])}"
        raise Refused(_NO_NAME)

    def number(self, text: str) -> str:
        """A number, by the name that the old expression has for it."""
        inside = _names(_one_line(self.flow.source.code(self.node)))
        named = self.flow.evaluator.named.items()
        return next((name for term, name in named if name in inside and f"{term.number:.10g}" == text), text)

    def call(self, name: str, arguments: list[str]) -> str:
        """``name(arguments)``, the arguments on a line of their own when one line gets too long."""
        source = self.flow.source
        inside = ", ".join(arguments)
        line, column = source.span(self.node)[0]
        if column + len(name) + len(inside) + 2 <= _WIDTH:
            return f"{name}({inside})"
        outer = source.indentation(line)
        inner = outer + source.module.default_indent
        if len(inner) + len(inside) > _LIMIT:
            inside = f",{source.newline}{inner}".join(arguments) + ","
        return f"{name}({source.newline}{inner}{inside}{source.newline}{outer})"

    def to_call(
        self, function: str, arguments: list[str], then: str = "", unused: Sequence[cst.FunctionDef] = ()
    ) -> Fix:
        """The edit that puts a call of ``function`` ("torch.nn.functional.gelu") there, with ``then`` behind
        it. ``unused``: functions that nothing calls any more; those with a private name go. Raises Refused.
        """
        edits = Edits(self.flow.source)
        functional = function.startswith("torch.nn.functional.")
        name = edits.add_import(function, "import torch.nn.functional as F" if functional else "import torch")
        self.into(edits, self.call(name, arguments) + then)
        for one in unused:
            if one.name.value.startswith("_"):
                with contextlib.suppress(Refused):
                    edits.remove_function(one)
        return edits.fix(f"Use {function.replace('torch.nn.functional', 'F')}", "unsafe")

    def into(self, edits: Edits, text: str) -> None:
        """Replace the expression by ``text`` and remove what is then unused. Raises Refused."""
        if self.step.augmented:
            raise Refused("it ends in an augmented assignment such as `+=`")
        edits.replace(self.node, text)
        removed = {step.statement for step in self.removed}
        reads = [read for step in self.removed for read in self.flow.reads[step]]
        removed |= {one for read in reads if (one := self._asserted(read)) is not None}
        for statement in removed:
            above = self._emptied(statement, removed)
            if above is None:
                edits.remove(statement)
            elif above not in removed:
                block = self.flow.source.block(statement)
                if statement is block[0]:
                    edits.remove(above)

    def _keep(self, term: Term) -> str | None:
        """The name of an assignment that gives ``term`` and would have gone; it stays, then. Not when
        that would give a name another meaning than it has without the removed assignments."""
        found = next((step for step in self.removed if step.term is term and step.target), None)
        if found is None or found.target is None or self.step.before.get(found.target) is not term:
            return None
        before, removed = self.kept, self.removed
        self.kept = {*before, found}
        self.removed = self._unneeded()
        back = {step.target for step in removed if step not in self.removed} - {found.target}
        if back & set(self.env) or found.target in self.used:
            self.kept, self.removed = before, removed
            return None
        self.env = self._names()
        return found.target

    def _names(self) -> dict[str, Term]:
        """What every name holds at the step, once the removed assignments are away."""
        held = ((name, self._without(name, self.step)) for name in self.step.before)
        return {name: term for name, term in held if term is not None}

    # -- what may go -------------------------------------------------------------------------

    def _unneeded(self) -> list[Step]:
        """Pure assignments read by the old expression, or by others of them, and by nothing else."""
        flow, inside = self.flow, self.flow.source.inside
        removed: list[Step] = []
        while True:
            more = [
                step
                for step in flow.steps
                if step not in removed
                and step not in self.kept
                and self._pure(step)
                and (reads := flow.reads.get(step))
                and all(
                    inside(read, self.node)
                    or any(inside(read, item.statement) for item in removed)
                    or self._asserted(read) is not None
                    for read in reads
                )
            ]
            if not more:
                return removed
            removed += more

    def _asserted(self, read: cst.Name) -> Statement | None:
        """The assertion that reads a name and is removed with it; None if another statement reads it."""
        source = self.flow.source
        check, statement = source.enclosing(read, cst.Assert), source.statement(read)
        alone = isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1
        if check is None or not alone or self._calls_again(check) or len(source.block(check)) == 1:
            return None
        return statement

    def _pure(self, step: Step) -> bool:
        if step.target is None or step.target in self.flow.captured or step.statement is self.step.statement:
            return False
        unknown = self.flow.evaluator.unknown
        return not any(self.flow.source.inside(call, step.expression) for call in unknown)

    def _without(self, name: str, at: Step) -> Term | None:
        """What ``name`` holds at ``at`` once the removed assignments are away; None if unknown."""
        steps = at.defined.get(name, frozenset())
        if not any(step in self.removed for step in steps):
            return at.before.get(name)
        held = {self._without(name, step) if step in self.removed else step.term for step in steps}
        return held.pop() if len(held) == 1 else None

    def _reads_same(self, node: cst.BaseExpression, names: dict[str, Term]) -> bool:
        """Whether the names in ``node`` still hold what they held where it stands."""
        used = _names(_one_line(self.flow.source.code(node)))
        return all(self.env.get(name) is names[name] for name in used if name in names)

    def _calls_again(self, node: cst.CSTNode) -> bool:
        """Whether ``node`` has a call that may do anything, and that stays where it is."""
        inside = self.flow.source.inside
        unknown = self.flow.evaluator.unknown
        return any(inside(call, node) and not inside(call, self.node) for call in unknown)

    def _emptied(self, statement: Statement, removed: set[Statement]) -> cst.If | cst.With | None:
        """The ``if``, or the ``with`` that decides about gradients, with nothing left to do without
        ``removed``."""
        block = self.flow.source.block(statement)
        above = self.flow.source.enclosing(statement, cst.If, cst.Else, cst.With, cst.FunctionDef)
        if not isinstance(above, (cst.If, cst.With)) or above.body.body[-1] is not block[-1]:
            return None
        if above.orelse is not None if isinstance(above, cst.If) else not self.flow.is_of_gradients(above):
            return None
        alone = all(item in removed for item in block) and not isinstance(
            self.flow.source.parent(above), cst.If
        )
        return above if alone else None


def atom(text: str) -> str:
    """``text`` in parentheses unless a dot may follow it as it is.

    Several lines may be so only in brackets, which are not part of ``text``, and so may ``a := b``.
    """
    if "\n" in text or ":=" in text:
        return f"({text})"
    node = cst.parse_expression(text)
    return text if isinstance(node, DOTTED) or node.lpar else f"({text})"


def moved(order: Sequence[int]) -> str:
    """The end of an expression that puts its dimensions into another order; empty where they stay."""
    swapped = [dim for dim, at in enumerate(order) if dim != at]
    if len(swapped) == 2:
        return f".transpose({swapped[0]}, {swapped[1]})"
    return f".permute({', '.join(map(str, order))})" if swapped else ""


def _one_line(text: str) -> str:
    if "#" in text:
        raise Refused("the expression contains a comment")
    return re.sub(r"\s*\n\s*", " ", text)


def _names(text: str) -> set[str]:
    return {node.value for node in descend(cst.parse_expression(text), cst.Name)}
