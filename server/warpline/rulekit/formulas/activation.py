"""Activation functions from elementary ones."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from warpline.rulekit.formulas.samples import Samples, computes, made_of
from warpline.rulekit.graph.activation import SAMPLES, is_named, named
from warpline.rulekit.terms.term import Term, without_casts


@dataclass(frozen=True, slots=True)
class Activation:
    kind: str
    input: Term
    call: str = ""  # "torch.nn.functional.gelu"; "" when there is none
    options: tuple[str, ...] = ()


def activation(term: Term) -> Activation | None:
    """The torch activation that a term spells out, or None."""
    return _softmax(term) or _pointwise(term)


@lru_cache(maxsize=1024)
def _pointwise(term: Term) -> Activation | None:
    """Known by its values: the same formula in any spelling."""
    best, operators = None, 1  # one operator is a call already
    for x in made_of(term) if computes(term) else ():
        samples = Samples({x: SAMPLES})
        numbers = samples.of(term) if x is not term else None
        enough = numbers is not None and samples.shown and len(samples.operators) > operators
        found = named(numbers) if numbers is not None and enough else None
        if found is not None and any(_is_call(one, found[0]) for one in samples.operators):
            continue  # beside others that change nothing: ``tanh(x) * 1.0``
        if found is not None and (not samples.guarded or found[0] == "Log sigmoid"):
            kind, call, parameter = found
            name, _, rest = call.removesuffix(")").partition("(..., ")
            options = [rest] if rest else [f"{parameter:.10g}"] if parameter != 1 else []
            best, operators = Activation(kind, x, _full(name), tuple(options)), len(samples.operators)
    return best


def _is_call(term: Term, kind: str) -> bool:
    """Whether a term is one operator that is such a function of its argument."""
    return len(term.args) == 1 and is_named(Samples({term.args[0]: SAMPLES}).of(term), kind)


def _full(name: str) -> str:
    return name.replace("F.", "torch.nn.functional.") if name.startswith("F.") else name


def _softmax(term: Term) -> Activation | None:
    parts, dim = softmax(term)
    if dim is None or term.op == "softmax":
        return None
    return Activation("Softmax", without_maximum(parts[-1], (dim,)), "torch.softmax", (f"dim={dim}",))


def softmax(weights: Term) -> tuple[tuple[Term, ...], int | None]:
    """The terms of a softmax, the last of them what it is taken of, and its dimension; None for what is none.

    Written out it is ``exp(x - logsumexp(x))``, or exponentials that are divided by their sum."""
    if weights.op == "softmax":
        return (weights, weights.args[0]), weights.value
    is_exp = weights.op == "exp"
    whole = weights.args[0] if is_exp else weights
    if whole.op != ("sub" if is_exp else "div"):
        return (), None
    part, over = map(without_casts, whole.args)
    if over.op != ("logsumexp" if is_exp else "sum") or without_casts(over.args[0]) is not part:
        return (), None
    dims, keep = over.value
    if not keep or not dims or len(dims) > 1 or not (is_exp or part.op == "exp"):
        return (), None
    return (weights, part) if is_exp else (weights, part, part.args[0]), dims[0]


def without_maximum(term: Term, dims: tuple[int, ...]) -> Term:
    """``x`` of ``x - x.amax(dim, keepdim=True)``: made smaller so that nothing overflows, which the call does
    by itself."""
    return term.args[0] if term.op == "sub" and is_largest(term.args[1], term.args[0], dims) else term


def is_largest(term: Term, scores: Term, dims: tuple[int, ...]) -> bool:
    """Whether it is ``scores.amax(dim, keepdim=True)``, ``scores.max(dim, keepdim=True).values`` or
    ``scores.max()``, detached or not."""
    while (
        term.op in ("cast", "detach") or (term.op, term.value) == ("attr", "values") or _is_first_of_two(term)
    ):
        term = term.args[0]
    if term.op not in ("amax", "max_along"):
        return False
    (given,), (along, kept) = term.args, term.value
    same = given is scores or (given.op == "detach" and given.args[0] is scores)
    return same and (along is None or (along == dims and kept))


def _is_first_of_two(term: Term) -> bool:
    """``x.max(1)[0]``, which are the largest numbers."""
    return term.op == "index" and term.args[0].op == "max_along" and [a.number for a in term.args[1:]] == [0]
