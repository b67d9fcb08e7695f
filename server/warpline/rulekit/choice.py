"""A value of the script's own that chooses one of two ways, and what chooses the other one."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from warpline.model.report import Fix
from warpline.rulekit.context import Context
from warpline.rulekit.double_settings import given_elsewhere
from warpline.rulekit.flags import flags_of, parts_of, turned
from warpline.rulekit.options import choices
from warpline.rulekit.origins import Origin, is_literal, origin, overridden
from warpline.syntax.edits import Edits, Refused
from warpline.syntax.source import Source


@dataclass(frozen=True, slots=True)
class Choice:
    """``origin``: the value that chooses. ``code``: what chooses the other way; None: a flag's other value.
    ``passed``: the word of the command line that gives the value instead."""

    origin: Origin
    code: str | None
    passed: str | None

    @property
    def place(self) -> tuple[str, int]:
        """The file and the line of the value."""
        return self.origin.place

    def fix(self, title: str) -> Fix:
        """The fix that chooses the other way. Raises Refused where the command line chooses."""
        if self.passed is not None:
            raise Refused(f"the command line passes `{self.passed}`: give it {self.code} there")
        if self.code is None:
            return turned(self.origin).fix(title, "unsafe")
        return Edits(self.origin.source).replace(self.origin.node, self.code).fix(title, "unsafe")


def of_test(context: Context, source: Source, test: cst.BaseExpression, holds: bool) -> Choice | None:
    """The value for which ``test`` is not ``holds``: a flag, or what is compared with a word."""
    if (flag := flag_choice(context, source, test, holds)) is not None:
        return flag
    for where, part, needed in parts_of(context, source, test, holds):
        if not isinstance(part, cst.Comparison) or len(part.comparisons) != 1:
            continue
        found, (compared,) = origin(context, where, part.left), part.comparisons
        if not found.editable or not is_literal(where, compared.comparator):
            continue
        word, now = where.literal(compared.comparator), found.source.literal(found.node)
        if isinstance(compared.operator, cst.Equal if needed else cst.NotEqual) and word != now:
            return chosen(context, found, where.code(compared.comparator))
        if isinstance(compared.operator, cst.NotEqual if needed else cst.Equal) and word == now:
            others = [one for one in choices(found.source, found.node) if found.source.literal(one) != now]
            return chosen(context, found, found.source.code(others[0])) if len(others) == 1 else None
    return None


def flag_choice(context: Context, source: Source, test: cst.BaseExpression, holds: bool) -> Choice | None:
    """A flag for which ``test`` is not ``holds``. None where something else may set it."""
    for switch in flags_of(context, source, test, holds):
        if not switch.on and not given_elsewhere(context, switch.flag):
            return Choice(switch.flag, None, None)
    return None


def chosen(context: Context, found: Origin, code: str) -> Choice | None:
    """The choice that is made by writing ``code`` there. None where something else may give the value."""
    if not found.editable:
        return None
    passed = overridden(context, found)
    if passed is None and given_elsewhere(context, found):
        return None
    return Choice(found, code, passed)
