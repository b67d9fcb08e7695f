"""LayerNorm and RMSNorm."""

from __future__ import annotations

import re
from dataclasses import dataclass

from warpline.rulekit.terms.flow import Flow
from warpline.rulekit.terms.term import Term, without_casts

_GAIN = re.compile(r"(weight|gamma|gain|scale|[wg])\d*$")
_SHIFT = re.compile(r"(bias|beta|shift|b)\d*$")


@dataclass(frozen=True, slots=True)
class Norm:
    kind: str  # "LayerNorm" | "RMSNorm"
    input: Term
    dims: tuple[int, ...]
    eps: Term | None
    weight: Term | None = None
    bias: Term | None = None
    reason: str | None = None  # why no fused call gives the same


def norm(flow: Flow, term: Term) -> Norm | None:
    """``[weight *] (x - mean) * rsqrt(var + eps) [+ bias]``, or ``x * rsqrt(mean(x ** 2) + eps)``.

    Over the batch (dimension 0) it is neither."""
    found = _shifted(term)
    return found if found is not None and 0 not in found.dims else None


def _shifted(term: Term) -> Norm | None:
    term = without_casts(term)
    if term.op == "add":
        for inner, bias in (term.args, term.args[::-1]):
            if _is_parameter(bias, _SHIFT) and (found := _scaled(inner)):
                return Norm(found.kind, found.input, found.dims, found.eps, found.weight, bias, found.reason)
    return _scaled(term)


def _scaled(term: Term) -> Norm | None:
    factors, divisors = _product(term)
    spread = [factor.args[0] for factor in factors if factor.op == "rsqrt"]
    rest = [factor for factor in factors if factor.op != "rsqrt"]
    for factor in rest:
        found = None
        if len(spread) == 1 and not divisors:
            found = _normed(factor, *_with_eps(spread[0]))
        elif len(divisors) == 1 and not spread:
            found = _by_deviation(factor, divisors[0])
        if found is not None:
            others = [other for other in rest if other is not factor]
            if not others:
                return found
            if len(others) == 1 and _is_parameter(others[0], _GAIN):
                return Norm(found.kind, found.input, found.dims, found.eps, others[0], None, found.reason)
    return None


def _product(term: Term) -> tuple[list[Term], list[Term]]:
    """Factors and divisors, casts looked through."""
    factors: list[Term] = []
    divisors: list[Term] = []
    waiting = [term]
    while waiting:
        item = waiting.pop()
        bare = without_casts(item)
        if bare.op == "mul":
            waiting.extend(bare.args)
        elif bare.op == "div":
            waiting.append(bare.args[0])
            divisors.append(bare.args[1])
        else:
            factors.append(item if bare.op not in ("sub", "rsqrt") else bare)
    return factors, divisors


def _with_eps(term: Term) -> tuple[Term, Term | None]:
    if term.op == "add":
        for spread, eps in (term.args, term.args[::-1]):
            if without_casts(spread).op in ("var", "mean", "sub") and eps.op in ("const", "attr", "name"):
                return without_casts(spread), eps
    return without_casts(term), None


def _normed(factor: Term, spread: Term, eps: Term | None) -> Norm | None:
    """``factor`` times one over the root of ``spread``."""
    centred = _centre(factor)
    if centred is not None:
        inner, dims = centred
        correction = _variance(spread, inner, dims, factor)
        if correction is None:
            return None
        reason = (
            "the variance is divided by the size minus one, but in F.layer_norm by the size"
            if correction
            else None
        )
        return Norm("LayerNorm", inner, dims, eps, reason=reason)
    if spread.op == "mean" and _same(spread.args[0], "pow", factor):
        dims, keep = spread.value
        return Norm("RMSNorm", factor, dims, eps) if keep and dims else None
    return None


def _by_deviation(factor: Term, divisor: Term) -> Norm | None:
    """``(x - mean) / (std + eps)``: near a LayerNorm, but not one."""
    centred = _centre(factor)
    if centred is None or divisor.op != "add":
        return None
    for root in divisor.args:
        if root.op == "sqrt" and _variance(root.args[0], *centred, factor) is not None:
            reason = (
                "eps is added to the deviation instead of the variance, so F.layer_norm gives other values"
            )
            return Norm("LayerNorm", *centred, None, reason=reason)
    return None


def _centre(term: Term) -> tuple[Term, tuple[int, ...]] | None:
    """``x - mean(x)`` -> x and the dimensions."""
    if term.op != "sub" or term.args[1].op != "mean":
        return None
    inner, mean = term.args
    dims, keep = mean.value
    same = without_casts(mean.args[0]) is without_casts(inner)
    return (inner, dims) if same and keep and dims else None


def _variance(term: Term, inner: Term, dims: tuple[int, ...], centred: Term) -> int | None:
    """The correction (0 or 1) when ``term`` is the variance of ``inner``, else None."""
    if (
        term.op == "var"
        and without_casts(term.args[0]) is without_casts(inner)
        and term.value[:2] == (dims, True)
    ):
        return int(term.value[2])
    if term.op == "mean" and term.value == (dims, True) and _same(term.args[0], "pow", centred):
        return 0
    if term.op == "sub" and term.args[0].op == "mean" and _same(term.args[0].args[0], "pow", inner):
        square = term.args[1]
        return 0 if _same(square, "pow", None) and square.args[0].op == "mean" else None
    return None


def _same(term: Term, op: str, inner: Term | None) -> bool:
    """``pow(inner, 2)``; any inner when None."""
    return (
        term.op == op
        and term.args[1].number == 2
        and (inner is None or without_casts(term.args[0]) is without_casts(inner))
    )


def _is_parameter(term: Term, names: re.Pattern[str]) -> bool:
    """``self.gamma``, ``1 + self.weight``, or an argument that is called so."""
    if term.op == "add":
        return any(arg.number == 1 for arg in term.args) and any(
            _is_parameter(arg, names) for arg in term.args
        )
    term = without_casts(term)
    if term.op == "name":
        return bool(names.match(str(term.value[0])))
    return term.op == "attr" and term.args[0].op == "name" and term.args[0].value[0] == "self"
