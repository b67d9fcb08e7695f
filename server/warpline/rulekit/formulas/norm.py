"""LayerNorm and RMSNorm."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from warpline.rulekit.formulas.samples import REDUCTIONS, Samples, apart, made_of
from warpline.rulekit.graph.norm import MOST_EPS, SAMPLES, form
from warpline.rulekit.terms.term import Term, without_casts

_GAIN = re.compile(r"(weight|gamma|gain|scale|[wg])\d*$")
_SHIFT = re.compile(r"(bias|beta|shift|b)\d*$")
#: What gain, shift and eps are at the samples: no formula without them gives the same.
_GIVEN_GAIN, _GIVEN_SHIFT, _EPS = 1.9, -0.6, 0.37


@dataclass(frozen=True, slots=True)
class Norm:
    kind: str  # "LayerNorm" | "RMSNorm"
    input: Term
    dims: tuple[int, ...]
    eps: Term | None
    weight: Term | None = None
    bias: Term | None = None
    reason: str | None = None  # why no fused call gives the same


def norm(term: Term) -> Norm | None:
    """``[weight *] (x - mean) * rsqrt(var + eps) [+ bias]``, or ``x * rsqrt(mean(x ** 2) + eps)``, by the
    values that it gives. Over the batch (dimension 0) it is neither."""
    found = _norm(term)
    return found if found is not None and 0 not in found.dims else None


@lru_cache(maxsize=1024)
def _norm(term: Term) -> Norm | None:
    parts = made_of(term, reductions=True) if without_casts(term).op in ("add", "mul", "div") else []
    best, operators = None, 1
    if any(part.op in REDUCTIONS for part in parts):
        for x in parts[1:]:
            found = next(_normed(term, x, parts), None)
            if found is not None and found[1] > operators:
                best, operators = found
    return best


def _normed(term: Term, x: Term, parts: list[Term]) -> Iterator[tuple[Norm, int]]:
    """The norm of ``x`` that ``term`` is, and how many operators make it."""
    others = apart(term, x)
    if len(others) > 3:  # gain, shift and eps
        return
    sums = [part for part in parts if part.op == "add"]
    small = [arg for part in sums for arg in part.args if arg.number and 0 < arg.number <= MOST_EPS]
    plain_gains = [one for one in others if _is_parameter(one, _GAIN)]
    # `1 + self.weight`
    plus_one = [part for part in sums if any(arg.number == 1 for arg in part.args)]
    gains = [*(part for part in plus_one if {*part.args} & {*plain_gains}), *plain_gains]
    held = [one for one in others if one.op in ("attr", "name")]
    shifts = [one for one in others if _is_parameter(one, _SHIFT)]
    for eps, weight, bias in itertools.product((*small, *held, None), (*gains, None), (*shifts, None)):
        given = {
            one: (value,) * len(SAMPLES)
            for one, value in ((eps, _EPS), (weight, _GIVEN_GAIN), (bias, _GIVEN_SHIFT))
            if one is not None
        }
        samples = Samples({x: SAMPLES, **given}, reductions=True)
        numbers = samples.of(term)
        if numbers is None or samples.dims is None or samples.guarded or not samples.shown:
            continue
        gain, shift = _GIVEN_GAIN if weight else 1.0, _GIVEN_SHIFT if bias else 0.0
        plain = tuple((number - shift) / gain for number in numbers)
        found = form(plain, {_EPS if eps else 0.0}, len(SAMPLES))
        if found is not None:
            kind = "LayerNorm" if found[0] else "RMSNorm"
            reason = found[1].replace("the fused call", "F.layer_norm") or None
            yield Norm(kind, x, samples.dims, eps, weight, bias, reason), len(samples.operators)


def _is_parameter(term: Term, names: re.Pattern[str]) -> bool:
    """``self.gamma``, or an argument that is called so."""
    if term.op == "name":
        return bool(names.match(str(term.value[0])))
    return term.op == "attr" and term.args[0].op == "name" and term.args[0].value[0] == "self"
