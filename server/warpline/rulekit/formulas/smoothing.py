"""One-hot rows that are smoothed: a part of each row is spread over all classes, or over the other ones."""

from __future__ import annotations

import math

from warpline.rulekit.graph.errors import TOLERANCE
from warpline.rulekit.terms.term import Term, without_casts

#: Stands for the number of classes where the share is that of one class.
EACH = Term("each", ())


def smoothed(term: Term) -> tuple[Term, Term, Term | None] | None:
    """``y`` as one-hot rows and ``s`` of ``y * (1 - s) + s / classes``; of ``y * (1 - s) + (1 - y) * s /
    (classes - 1)`` the number of classes, too. ``EACH`` for ``y * k + (1 - y) * s``: the text does not say
    whether a row adds up to one."""
    term = without_casts(term)
    if term.op != "add":
        return None
    for product, rest in (term.args, term.args[::-1]):
        if product.op != "mul":
            continue
        for hot, kept in (product.args, product.args[::-1]):
            hot = without_casts(hot)
            if hot.op != "one_hot" or len(hot.args) < 2:
                continue
            smoothing = _spread(rest, hot.args[1])
            if smoothing is not None and _is_rest_of_one(kept, smoothing):
                return hot, smoothing, None
            smoothing, number = _among_others(rest, hot) or (None, None)
            if smoothing is not None and _is_rest_of_one(kept, smoothing):
                return hot, smoothing, number
            for others, share in (rest.args, rest.args[::-1]) if rest.op == "mul" else ():
                if others.op == "sub" and others.args[0].number == 1 and others.args[1] is hot:
                    return hot, share, EACH
    return None


def _among_others(term: Term, hot: Term) -> tuple[Term, Term] | None:
    """``s`` and ``classes`` of ``(1 - hot) * s / (classes - 1)``."""
    above, below = _quotient(term)
    others = [one for one in above if one.op == "sub" and one.args[0].number == 1 and one.args[1] is hot]
    numbers = [one for one in above if one.number is not None]
    named = [one for one in above if one.number is None and one not in others]
    if len(others) != 1 or len(named) > 1:
        return None
    classes = hot.args[1]
    if classes.number is not None and not below:
        share = math.prod(one.number or 0.0 for one in numbers) * (classes.number - 1)
        if named:
            return (named[0], classes) if abs(share - 1) < TOLERANCE else None
        return Term("const", (), round(share, 12)), classes
    parts = [*numbers, *named]
    less = below[0] if len(below) == len(parts) == 1 else None
    if less is None or less.op != "sub" or less.args[1].number != 1:
        return None
    return (parts[0], less.args[0]) if _is_number_of_classes(less.args[0], classes) else None


def _is_number_of_classes(term: Term, classes: Term) -> bool:
    """Whether it is ``classes``, or the size of the same scores' last or second dimension."""
    same = term.op == classes.op == "size" and term.args[0] is classes.args[0]
    return term is classes or (same and {term.value, classes.value} <= {1, -1})


def _quotient(term: Term) -> tuple[list[Term], list[Term]]:
    """The factors above and below the line of a quotient of products."""
    term = without_casts(term)
    if term.op not in ("mul", "div"):
        return [term], []
    (above, below), (more, less) = map(_quotient, term.args)
    return ([*above, *more], [*below, *less]) if term.op == "mul" else ([*above, *less], [*below, *more])


def _spread(term: Term, classes: Term) -> Term | None:
    """``s`` of ``s / classes``."""
    if term.number is not None and classes.number is not None:
        return Term("const", (), round(term.number * classes.number, 12))
    if term.op == "div" and term.args[1] is classes:
        return term.args[0]
    if term.op == "mul" and classes.number:
        for one, share in (term.args, term.args[::-1]):
            if share.number is not None and abs(share.number * classes.number - 1) < TOLERANCE:
                return one
    return None


def _is_rest_of_one(term: Term, smoothing: Term) -> bool:
    """Whether ``term`` is ``1 - smoothing``."""
    if term.number is not None and smoothing.number is not None:
        return abs(term.number + smoothing.number - 1) < TOLERANCE
    return term.op == "sub" and term.args[0].number == 1 and term.args[1] is smoothing
