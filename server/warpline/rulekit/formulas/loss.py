"""Losses from logarithms, squares and means."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import partial

from warpline.rulekit.formulas.samples import Samples, computes, made_of
from warpline.rulekit.graph.errors import FIRST, MOST_BETA, PROBABILITIES, SECOND, TOLERANCE, Error, forms
from warpline.rulekit.graph.pointwise import GUARD, Numbers
from warpline.rulekit.terms.term import Term, factors, without_casts

_ENTROPY = "Binary cross entropy"


@dataclass(frozen=True, slots=True)
class Loss:
    kind: str
    call: str
    arguments: tuple[Term, ...]
    options: tuple[str, ...] = ()


def loss(term: Term) -> Loss | None:
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
    found = _negative(inner) if constant * sign == -1 else None
    found = found or _error(without_casts(rest[0].args[0]), sign)
    return Loss(found.kind, found.call, found.arguments, found.options + options) if found else None


def _negative(inner: list[Term]) -> Loss | None:
    """Cross entropies: minus the mean of log probabilities."""
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
    return None


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
            if guard.number is not None and 0 < guard.number <= GUARD:
                return inner
    if term.op == "clamp":
        low = dict(term.value).get("min")
        return term.args[0] if isinstance(low, float) and 0 < low <= GUARD else term
    return term


def _binary(p: Term, target: Term) -> Loss:
    if p.op == "sigmoid":
        return Loss(_ENTROPY, "binary_cross_entropy_with_logits", (p.args[0], target))
    return Loss(_ENTROPY, "binary_cross_entropy", (p, target))


def _error(term: Term, sign: float) -> Loss | None:
    """The loss in two terms that ``sign`` times ``term`` is, known by its values: two of the terms that it is
    computed of, and nothing else."""
    best, operators = None, 1
    parts = made_of(term) if computes(term) else []
    given = {part: _given(part) for part in parts}
    for first, second in itertools.permutations(parts[1:], 2):
        if given[first] & given[second] or given[first] | given[second] != given[term]:
            continue
        for inputs in ((FIRST, SECOND), (PROBABILITIES, SECOND)):
            samples = Samples({first: inputs[0], second: inputs[1]})
            numbers = samples.of(term)
            if numbers is None or not samples.shown or len(samples.operators) <= operators:
                continue
            found = _named([sign * number for number in numbers], inputs, samples.operators)
            if found is not None and (not samples.guarded or found[0] == _ENTROPY):
                kind, call, options = found
                best, operators = Loss(kind, call, (first, second), options), len(samples.operators)
    return best


def _given(term: Term) -> frozenset[Term]:
    """The terms that it is made of and that are no operations on numbers."""
    if term.number is not None:
        return frozenset()
    return frozenset(one for one in made_of(term) if not computes(one) and one.op != "cast")


def _named(
    numbers: list[float], inputs: tuple[Numbers, Numbers], operators: set[Term]
) -> tuple[str, str, tuple[str, ...]] | None:
    for kind, call, error in forms(set()):
        if inputs[0] is PROBABILITIES and kind != _ENTROPY:
            continue  # they show small errors only
        if _are(numbers, error, inputs) and call and "smooth" not in call:
            return kind, call.removeprefix("F."), ()
    if inputs[0] is PROBABILITIES:
        return None
    constants = {arg.number for one in operators for arg in one.args if arg.number is not None}
    for delta in sorted(one for one in constants | {1.0} if 0 < one < MOST_BETA):
        if _are(numbers, partial(_huber, delta), inputs):
            return "A smooth error", "huber_loss", (f"delta={delta:.10g}",) if delta != 1 else ()
    return None


def _huber(delta: float, x: float, y: float) -> float:
    size = abs(x - y)
    return size * size / 2 if size < delta else delta * (size - delta / 2)


def _are(numbers: list[float], error: Error, inputs: tuple[Numbers, Numbers]) -> bool:
    try:
        wanted = [error(x, y) for x, y in zip(*inputs, strict=True)]
    except ValueError:
        return False
    return all(abs(a - b) <= TOLERANCE * max(1.0, abs(b)) for a, b in zip(numbers, wanted, strict=True))
