"""Losses from logarithms, squares and means."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from functools import partial

from warpline.rulekit.formulas.activation import is_largest, without_maximum
from warpline.rulekit.formulas.samples import Samples, computes, made_of
from warpline.rulekit.formulas.smoothing import smoothed
from warpline.rulekit.graph.errors import FIRST, MOST_BETA, PROBABILITIES, SECOND, fits, forms, smooth
from warpline.rulekit.graph.pointwise import GUARD, Numbers
from warpline.rulekit.terms.calls import column_of
from warpline.rulekit.terms.term import Term, factors, without_casts

_ENTROPY = "Binary cross entropy"
_OPPOSITE = {"gt": "le", "lt": "ge"}


@dataclass(frozen=True, slots=True)
class Loss:
    """``smoothing``: of a cross entropy's labels. ``last``: its classes are along the last dimension, counted
    from the end. ``words``: what its trial is told. ``ignored``: the class whose rows a mask leaves out of
    ``rows``. ``apart``: it is not added up, and has one number for each label. ``others``: the number of
    classes, where the smoothing is shared by all but the right one."""

    kind: str
    call: str
    arguments: tuple[Term, ...]
    options: tuple[str, ...] = ()
    smoothing: Term | None = None
    last: bool = False
    words: tuple[str, ...] = ()
    ignored: Term | None = None
    rows: Term | None = None
    apart: bool = False
    others: Term | None = None


def loss(term: Term) -> Loss | None:
    """The loss that a term spells out, with its arguments and options, or None. Means and sums over
    everything, or over the rows that a mask of the labels leaves; else only what is made of exponentials."""
    if term.op == "nll_loss" and term.value == ():
        return _cross_entropy(term.args[0], term.args[1])
    if term.op == "binary_cross_entropy" and term.value == () and term.args[0].op == "sigmoid":
        return _binary(term.args[0], term.args[1])
    sign, rest = factors(term)
    if len(rest) != 1 or abs(sign) != 1:
        return None
    if rest[0].op == "div":
        return _mean_of_kept(rest[0].args[0], rest[0].args[1], sign)
    if rest[0].op == "sub":
        found = _normalized(*rest[0].args) if sign > 0 and _is_one_each(rest[0]) else None
        by_hand = found is not None and "by_hand" in found.words
        return replace(found, options=('reduction="none"',), apart=True) if found and by_hand else None
    if not _is_total(rest[0], "mean", "sum"):
        return None
    added = without_casts(rest[0].args[0])
    constant, inner = factors(added)
    options = ('reduction="sum"',) if rest[0].op == "sum" else ()
    found = _picked(inner, constant * sign) if abs(constant) == 1 else None
    if found is None and (rest[0].op == "sum" or added.op == "index"):
        found = _kept(added, sign)
    found = found or _error(added, sign)
    return replace(found, options=found.options + options) if found else None


def _is_total(term: Term, *ops: str) -> bool:
    """Whether it is a mean or sum of everything."""
    return term.op in ops and term.value[0] is None


def _mean_of_kept(whole: Term, number: Term, sign: float) -> Loss | None:
    """``(loss * mask).sum() / mask.sum()``: ``sign`` times the mean over the rows that a mask leaves."""
    constant, rest = factors(without_casts(whole))
    number = without_casts(number)
    if len(rest) != 1 or abs(constant) != 1 or not (_is_total(rest[0], "sum") and _is_total(number, "sum")):
        return None
    found = _kept(without_casts(rest[0].args[0]), sign * constant)
    left_out = _left_out(number.args[0], True, of=found.arguments[1]) if found is not None else None
    return found if found is not None and left_out == (found.arguments[1], found.ignored) else None


def _kept(term: Term, sign: float) -> Loss | None:
    """The loss of the rows that a mask leaves: all but those of one label."""
    for each, mask in _masked(term):
        constant, inner = factors(without_casts(each))
        found = _picked(inner, sign * constant) if abs(constant) == 1 and _is_one_each(*inner) else None
        if found is None:
            continue
        scores, label = found.arguments
        found = replace(found, rows=inner[0])
        wanted, ignored = _left_out(mask, True, of=label) or (None, None)
        if label is not wanted:  # labels that are no classes may be among them
            wanted, ignored = _left_out(mask) or (None, None)
        if wanted and ignored and (label is wanted or _is_safe(label, wanted, ignored)):
            return replace(found, arguments=(scores, wanted), ignored=ignored)
    return None


def _masked(term: Term) -> list[tuple[Term, Term]]:
    """What a mask is laid over, and the mask of what it leaves, for each reading of ``term``."""
    if term.op == "mul":
        return [(term.args[0], term.args[1]), (term.args[1], term.args[0])]
    if term.op == "neg":
        return [(Term("neg", (each,)), mask) for each, mask in _masked(term.args[0])]
    if term.op == "where":
        return [
            (each, mask)
            for (each, mask), (other, _) in itertools.permutations(_chosen(term))
            if other.number == 0 or other.op == "zeros_like"
        ]
    if term.op == "masked_fill" and term.args[2].number == 0:
        return [(term.args[0], Term("not", (term.args[1],)))]
    if term.op == "index" and len(term.args) == 2:
        return [(term.args[0], term.args[1])]
    return []


def _left_out(
    mask: Term, classes: bool = False, other: bool = False, of: Term | None = None
) -> tuple[Term, Term] | None:
    """The labels and the one whose rows ``mask`` leaves out, a whole number, or of the labels ``of`` what has
    a name; ``other``: whose rows it leaves. ``classes``: no label is below 0."""
    mask = without_casts(mask)
    if mask.op == "not":
        return _left_out(mask.args[0], classes, not other, of)
    label, number = mask.args if len(mask.args) == 2 else (mask, mask)
    if label.number is not None or number is of:
        label, number = number, label
    named = label is of and number.op in ("name", "attr") and mask.op in ("eq", "ne")
    if not named and (number.number is None or not number.number.is_integer()):
        return None
    above = "gt" if label is mask.args[0] else "lt"
    if classes and number.number == 0 and mask.op == (_OPPOSITE[above] if other else above):
        return label, number
    return (label, number) if mask.op == ("eq" if other else "ne") else None


def _is_safe(label: Term, wanted: Term, ignored: Term) -> bool:
    """Whether ``label`` is ``wanted`` but where that is the label that is left out, which is no class."""
    if label.op in ("clamp", "clamp_min") and label.args[0] is wanted:
        return dict(label.value) == {"min": 0} and (ignored.number or 0) < 0
    for kept, mask in _masked_labels(label):
        found = _left_out(mask)
        if kept is wanted and found is not None and found[0] is wanted and found[1] is ignored:
            return True
    return False


def _chosen(where: Term) -> list[tuple[Term, Term]]:
    """Each side of a ``where``, with the mask of the entries that are taken from it."""
    mask, first, second = where.args
    return [(first, mask), (second, Term("not", (mask,)))]


def _masked_labels(label: Term) -> list[tuple[Term, Term]]:
    if label.op == "where":
        return _chosen(label)
    if label.op == "masked_fill":
        return [(label.args[0], Term("not", (label.args[1],)))]
    return _masked(label) if label.op == "mul" else []


def _is_one_each(*terms: Term) -> bool:
    """Whether a term has exactly one number for each label."""
    if len(terms) != 1:
        return False
    (term,) = terms
    if term.op == "sub":
        for whole, picked in (term.args, term.args[::-1]):
            log_sum = _log_sum(whole)
            if log_sum is not None:
                return not log_sum[2] and _is_one_each(picked)
        return False
    if term.op == "squeeze" and term.args[0].op == "gather":
        return dict(term.value) == {"dim": term.args[0].args[1].number}
    if term.op == "index":
        return _is_first_column(term) or (len(term.args) == 3 and term.args[1].op == "arange")
    return term.op == "sum" and term.value[0] in ((1,), (-1,)) and not term.value[1]


def _cross_entropy(
    logs: Term, target: Term | None, smoothing: Term | None = None, sign: float = -1
) -> Loss | None:
    """The loss of log probabilities, if ``sign`` times ``logs`` are minus such."""
    logs = without_casts(logs)
    if logs.op == "neg":
        return _cross_entropy(logs.args[0], target, smoothing, -sign)
    found = _log_softmax_of(logs) if sign < 0 else _surprise_of(logs)
    if found is None or target is None:
        return None
    scores, dim = found
    words = ("by_hand",) if _is_by_hand(logs) else ()
    return Loss("Cross entropy", "cross_entropy", (scores, target), (), smoothing, dim == -1, words)


def _picked(inner: list[Term], sign: float) -> Loss | None:
    """Cross entropies: ``sign`` times the mean of log probabilities of classes, or of their negatives."""
    if len(inner) != 1:
        return None
    if inner[0].op == "sub":
        return _normalized(*(inner[0].args if sign > 0 else inner[0].args[::-1]))
    term = _column(inner[0])
    if term.op == "index" and len(term.args) == 3 and term.args[1].op == "arange":
        return _cross_entropy(term.args[0], term.args[2], sign=sign)
    if term.op == "gather" and term.args[1].number in (1, -1):
        return _cross_entropy(term.args[0], column_of(term.args[2]), sign=sign)
    if term.op == "sum" and term.value[0] in ((1,), (-1,)):
        return _one_hot(term.args[0], sign)
    return None


def _normalized(whole: Term, picked: Term) -> Loss | None:
    """``logsumexp(x) - x[y]``: what is taken of all classes less the score of the right one."""
    found, column = _log_sum(whole), _column(picked)
    if found is None or column.op != "gather" or column.args[1].number not in (1, -1):
        return None
    scores, dim, kept = found
    target = column_of(column.args[2])
    # Of one row and one column the difference would be a matrix.
    if column.args[0] is not scores or target is None or kept is not (column is picked):
        return None
    words = ("apart", "by_hand") if _is_by_hand(whole) else ("apart",)
    scores = without_maximum(scores, (dim,))
    return Loss("Cross entropy", "cross_entropy", (scores, target), (), None, dim == -1, words)


def _column(term: Term) -> Term:
    """``x`` of ``x.squeeze(1)``, ``x[..., 0]`` and ``x.view(-1)``."""
    while term.op in ("squeeze", "view", "flatten") or _is_first_column(term):
        term = term.args[0]
    return term


def _is_first_column(term: Term) -> bool:
    *before, last = term.args[1:] or (term,)
    return (
        term.op == "index" and last.number == 0 and all(one.value is ... for one in before) and bool(before)
    )


def _is_by_hand(term: Term) -> bool:
    """Whether a logarithm of exponentials in it is made of them."""
    term = without_casts(term)
    if term.op in ("add", "sub"):
        return any(_is_by_hand(one) for one in term.args)
    return term.op == "log" and term.args[0].op == "sum"


def _one_hot(term: Term, sign: float) -> Loss | None:
    """``(one_hot(y) * log_softmax(x)).sum(1)``, also with smoothed labels."""
    if term.op != "mul":
        return None
    for mask, logs in (term.args, term.args[::-1]):
        minus = mask.op == "neg"
        mask = mask.args[0] if minus else mask
        hot, smoothing, others = smoothed(mask) or (without_casts(mask), None, None)
        right = sign * (-1) ** minus
        found = _cross_entropy(logs, hot.args[0], smoothing, right) if hot.op == "one_hot" else None
        if found is not None:
            found = replace(found, others=others)
            return replace(found, words=("one_hot", *(["smooth"] if smoothing else []), *found.words))
    return None


def _log_softmax_of(term: Term) -> tuple[Term, int] | None:
    """``x`` of ``log_softmax(x)``, ``log(softmax(x))`` and ``x - logsumexp(x)``, and the dimension (1 or -1)
    with the classes."""
    term = without_casts(term)
    if term.op == "log":
        term = _unguarded(term.args[0])
        return (term.args[0], term.value) if term.op == "softmax" and term.value in (1, -1) else None
    if term.op == "log_softmax" and term.value in (1, -1):
        return term.args[0], term.value
    return _less(*term.args) if term.op == "sub" else None


def _surprise_of(term: Term) -> tuple[Term, int] | None:
    """``x`` of ``logsumexp(x) - x`` in the same way."""
    term = without_casts(term)
    return _less(*term.args[::-1]) if term.op == "sub" else None


def _less(scores: Term, whole: Term) -> tuple[Term, int] | None:
    """The scores and their dimension with the classes, if ``whole`` is what a softmax of them divides by."""
    found = _log_sum(whole)
    if found is None or found[0] is not scores or not found[2]:
        return None
    return without_maximum(scores, found[1:2]), found[1]


def _log_sum(term: Term) -> tuple[Term, int, bool] | None:
    """``x`` of ``logsumexp(x)`` and ``x.exp().sum().log()``, the dimension (1 or -1) of the classes, and
    whether that dimension stays. The largest of ``x`` may be taken off before, and added after."""
    term = without_casts(term)
    if term.op == "add":
        for whole, largest in (term.args, term.args[::-1]):
            found, column = _log_sum(whole), _column(largest)
            scores = found[0] if found is not None else column
            if found is None or scores.op != "sub" or scores.args[1] is not column:
                continue
            if is_largest(column, scores.args[0], found[1:2]) and found[2] is (column is largest):
                return scores.args[0], *found[1:]
        return None
    if term.op == "log" and term.args[0].op == "sum" and term.args[0].args[0].op == "exp":
        summed = term.args[0]
        scores, (dims, kept) = summed.args[0].args[0], summed.value
    elif term.op == "logsumexp":
        scores, (dims, kept) = term.args[0], term.value
    else:
        return None
    return (scores, dims[0], bool(kept)) if dims in ((1,), (-1,)) else None


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
            found = _named(tuple(sign * number for number in numbers), inputs, samples.operators)
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
    numbers: Numbers, inputs: tuple[Numbers, Numbers], operators: set[Term]
) -> tuple[str, str, tuple[str, ...]] | None:
    for kind, call, error in forms(set()):
        if inputs[0] is PROBABILITIES and kind != _ENTROPY:
            continue  # they show small errors only
        if fits(numbers, error, *inputs, factor=1.0) and call and "smooth" not in call:
            return kind, call.removeprefix("F."), ()
    if inputs[0] is PROBABILITIES:
        return None
    constants = {arg.number for one in operators for arg in one.args if arg.number is not None}
    for delta in sorted(one for one in constants | {1.0} if 0 < one < MOST_BETA):
        if fits(numbers, partial(smooth, delta), *inputs, factor=delta):
            return "A smooth error", "huber_loss", (f"delta={delta:.10g}",) if delta != 1 else ()
    return None
