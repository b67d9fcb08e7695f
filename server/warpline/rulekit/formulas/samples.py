"""Terms computed at sample points: the same formula in every spelling.

What :mod:`warpline.rulekit.graph.evaluate` does with the recorded operators of a step, for the text.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

from warpline.rulekit.graph.evaluate import MOST_NODES
from warpline.rulekit.graph.pointwise import GUARD, POINTWISE, Numbers, function, one_sided
from warpline.rulekit.terms.term import Term

REDUCTIONS = ("mean", "var")
#: The samples do not show a number that is as near to a whole one.
_NEAR = 1e-3
#: Terms of torch's operators under names of their own.
_NAMES = {"not": "logical_not"}


class Samples:
    """``given``: numbers for some terms. ``operators``: the operations that were computed with them.

    ``shown``: whether the samples show what each of them does. They do not where all are on one side of a
    limit, beside a number that is too small, and where the type changes. ``guarded``: there is such a limit
    or number of at most ``GUARD``, or as near to 1.
    """

    def __init__(self, given: Mapping[Term, Numbers], reductions: bool = False) -> None:
        self._given = given
        self._known: dict[Term, Numbers | None] = dict(given)
        self._count = len(next(iter(given.values())))
        self.operators: set[Term] = set()
        self.reductions = reductions
        self.dims: tuple[int, ...] | None = None  # of the reductions, which all have the same
        self.shown, self.guarded = True, False

    def of(self, term: Term) -> Numbers | None:
        """The term at the samples; None where it is made of something else too."""
        if term not in self._known:
            self._known[term] = None
            with contextlib.suppress(ArithmeticError, ValueError, TypeError):
                self._known[term] = self._made(term)
        return self._known[term]

    def _made(self, term: Term) -> Numbers | None:
        if term.number is not None:
            return (term.number,) * self._count
        if term.op == "cast":
            self.shown &= self.reductions  # the rule for norms looks at their types
            return self.of(term.args[0])
        if not computes(term):
            return self._reduced(term) if self.reductions and term.op in REDUCTIONS else None
        columns = [self.of(arg) for arg in term.args]
        name, named = _NAMES.get(term.op, term.op), dict(term.value or ())
        compute = function(name, named)
        if compute is None or None in columns:
            return None
        self.operators.add(term)
        for arg in term.args:
            if arg.number is not None and arg not in self._given:
                off = round(abs(arg.number - round(arg.number)), 12)
                if 0 < off < _NEAR:
                    self._not_shown(off)
        for limit in one_sided(name, named, columns):
            self._not_shown(limit)
        return tuple(float(compute(*row)) for row in zip(*columns, strict=True))

    def _not_shown(self, size: float) -> None:
        self.guarded |= size <= GUARD
        self.shown &= size <= GUARD

    def _reduced(self, term: Term) -> Numbers | None:
        """A mean or a variance over the samples, which stand for all entries of the dimensions."""
        numbers, (dims, keep, *correction) = self.of(term.args[0]), term.value
        if numbers is None or not dims or not keep or self.dims not in (None, dims):
            return None
        self.dims = dims
        self.operators.add(term)
        mean = sum(numbers) / self._count
        if term.op == "var":
            mean = sum((one - mean) ** 2 for one in numbers) / (self._count - correction[0])
        return (mean,) * self._count


def computes(term: Term) -> bool:
    """Whether a term is an operation on numbers, each by itself."""
    return _NAMES.get(term.op, term.op) in POINTWISE and bool(term.args)


def made_of(term: Term, reductions: bool = False) -> list[Term]:
    """``term`` and what it is computed of by operations on numbers, nearest first; at most ``MOST_NODES``."""
    found: dict[Term, None] = {term: None}
    waiting = [term]
    while waiting and len(found) < MOST_NODES:
        item = waiting.pop(0)
        if computes(item) or item.op == "cast" or (reductions and item.op in REDUCTIONS):
            fresh = [arg for arg in item.args if arg not in found and arg.number is None]
            found |= dict.fromkeys(fresh)
            waiting += fresh
    return list(found)


def apart(term: Term, x: Term) -> set[Term]:
    """What ``term`` is made of beside ``x``: terms that are no operations on numbers."""
    found: set[Term] = set()
    waiting, seen = [term], {x}
    while waiting:
        item = waiting.pop()
        if item in seen or item.number is not None:
            continue
        seen.add(item)
        if computes(item) or item.op == "cast" or item.op in REDUCTIONS:
            waiting += item.args
        else:
            found.add(item)
    return found
