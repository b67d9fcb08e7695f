"""Losses from logarithms, squares and means."""

from __future__ import annotations

from dataclasses import dataclass

from warpline.rulekit.terms.flow import Flow
from warpline.rulekit.terms.term import Term, factors, polynomial, without_casts

#: A number as small as this beside a probability only keeps the logarithm finite.
_GUARD = 1e-6


@dataclass(frozen=True, slots=True)
class Loss:
    kind: str
    call: str
    arguments: tuple[Term, ...]
    options: tuple[str, ...] = ()


def loss(flow: Flow, term: Term) -> Loss | None:
    """The loss that a term spells out, with its arguments and options, or None. Means and sums over
    everything only."""
    if term.op == "nll_loss" and term.value == ():
        scores = _log_softmax_of(term.args[0])
        return Loss("Cross entropy", "cross_entropy", (scores, term.args[1])) if scores else None
    if term.op == "binary_cross_entropy" and term.value == () and term.args[0].op == "sigmoid":
        return _binary(term.args[0], term.args[1])
    sign, rest = factors(term)
    if len(rest) != 1 or abs(sign) != 1 or rest[0].op not in ("mean", "sum") or rest[0].value[0] is not None:
        return None
    constant, inner = factors(without_casts(rest[0].args[0]))
    options = ('reduction="sum"',) if rest[0].op == "sum" else ()
    found = _negative(inner, rest[0].op) if constant * sign == -1 else None
    if constant * sign == 1 and len(inner) == 1:
        found = _error(inner[0])
    return Loss(found.kind, found.call, found.arguments, found.options + options) if found else None


def _negative(inner: list[Term], reduction: str) -> Loss | None:
    """Cross entropies: minus the mean of log probabilities."""
    if len(inner) == 2 and reduction == "sum":
        return None
    if len(inner) != 1:
        return None
    term = inner[0]
    while term.op in ("squeeze", "view", "flatten"):
        term = term.args[0]
    if term.op == "index" and len(term.args) == 3 and term.args[1].op == "arange":
        scores, target = _log_softmax_of(term.args[0]), term.args[2]
        return Loss("Cross entropy", "cross_entropy", (scores, target)) if scores else None
    if term.op == "gather" and term.args[1].number in (1, -1):
        scores, column = _log_softmax_of(term.args[0]), _column_of(term.args[2])
        return Loss("Cross entropy", "cross_entropy", (scores, column)) if scores and column else None
    if term.op == "sum" and term.value[0] in ((1,), (-1,)):
        return _one_hot(term.args[0])
    return _written_binary(term)


def _one_hot(term: Term) -> Loss | None:
    """``(one_hot(y) * log_softmax(x)).sum(1)``."""
    if term.op != "mul":
        return None
    for mask, logs in (term.args, term.args[::-1]):
        scores, mask = _log_softmax_of(logs), without_casts(mask)
        if scores is not None and mask.op == "one_hot":
            return Loss("Cross entropy", "cross_entropy", (scores, mask.args[0]))
    return None


def _column_of(term: Term) -> Term | None:
    """``y`` of ``y.unsqueeze(1)``, ``y[:, None]`` and ``y.view(-1, 1)``."""
    if term.op == "unsqueeze" and term.value in (1, -1):
        return term.args[0]
    if (
        term.op == "index"
        and len(term.args) == 3
        and term.args[2].op == "const"
        and term.args[2].value is None
    ):
        return term.args[0]
    if term.op in ("view", "reshape") and [arg.number for arg in term.args[1:]] == [-1, 1]:
        return term.args[0]
    return None


def _log_softmax_of(term: Term) -> Term | None:
    """``x`` of ``log_softmax(x)``, ``log(softmax(x))`` and ``x - logsumexp(x)``, over the classes."""
    term = without_casts(term)
    if term.op == "log":
        inner = _unguarded(term.args[0])
        return inner.args[0] if inner.op == "softmax" and inner.value in (1, -1) else None
    if term.op == "log_softmax" and term.value in (1, -1):
        return term.args[0]
    if term.op == "sub" and term.args[1].op == "logsumexp" and term.args[1].args[0] is term.args[0]:
        return term.args[0] if term.args[1].value in (((1,), True), ((-1,), True)) else None
    return None


def _unguarded(term: Term) -> Term:
    """``p`` of ``p + 1e-8``, and of ``p.clamp(min=1e-8)``."""
    if term.op == "add":
        for inner, guard in (term.args, term.args[::-1]):
            if guard.number is not None and 0 < guard.number <= _GUARD:
                return inner
    if term.op == "clamp":
        low = dict(term.value).get("min")
        return term.args[0] if isinstance(low, float) and 0 < low <= _GUARD else term
    return term


def _written_binary(term: Term) -> Loss | None:
    """``y * log(p) + (1 - y) * log(1 - p)``."""
    if term.op != "add":
        return None
    for first, second in (term.args, term.args[::-1]):
        found, other = _log_factor(first), _log_factor(second)
        if found is None or other is None:
            continue
        (target, p), (rest, complement) = found, other
        if _is_complement(rest, target) and _is_complement(complement, p):
            return _binary(p, target)
    return None


def _log_factor(term: Term) -> tuple[Term, Term] | None:
    """``a * log(b)`` -> a, b."""
    if term.op != "mul":
        return None
    for factor, log in (term.args, term.args[::-1]):
        if log.op == "log":
            return without_casts(factor), _unguarded(log.args[0])
    return None


def _is_complement(term: Term, whole: Term) -> bool:
    return polynomial(term, whole) == {0: 1.0, 1: -1.0}


def _binary(p: Term, target: Term) -> Loss:
    if p.op == "sigmoid":
        return Loss("Binary cross entropy", "binary_cross_entropy_with_logits", (p.args[0], target))
    return Loss("Binary cross entropy", "binary_cross_entropy", (p, target))


def _error(term: Term) -> Loss | None:
    """The loss in a difference: squared, absolute, or smooth."""
    if term.op == "pow" and term.args[1].number == 2:
        inner = term.args[0].args[0] if term.args[0].op == "abs" else term.args[0]
        return Loss("A squared error", "mse_loss", inner.args) if inner.op == "sub" else None
    if term.op == "abs" and term.args[0].op == "sub":
        return Loss("An absolute error", "l1_loss", term.args[0].args)
    if term.op == "where" and term.args[0].op in ("lt", "le"):
        return _smooth(*term.args)
    return None


def _smooth(test: Term, near: Term, far: Term) -> Loss | None:
    """``where(|d| < delta, d ** 2 / 2, delta * (|d| - delta / 2))``."""
    size, delta = test.args[0], test.args[1].number
    if size.op != "abs" or size.args[0].op != "sub" or not delta:
        return None
    difference = size.args[0]
    half, square = factors(near)
    line = polynomial(far, size)
    squared = len(square) == 1 and square[0].op == "pow" and square[0].args[0] in (size, difference)
    if not squared or half != 0.5 or square[0].args[1].number != 2 or line is None:
        return None
    if abs(line.get(1, 0) - delta) > 1e-9 or abs(line.get(0, 0) + delta * delta / 2) > 1e-9:
        return None
    options = (f"delta={delta:g}",) if delta != 1 else ()
    return Loss("A smooth error", "huber_loss", difference.args, options)
