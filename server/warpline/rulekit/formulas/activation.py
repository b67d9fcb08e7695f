"""Activation functions from elementary ones."""

from __future__ import annotations

import math
from dataclasses import dataclass

from warpline.rulekit.terms.flow import Flow
from warpline.rulekit.terms.term import Term, close, factors, polynomial


@dataclass(frozen=True, slots=True)
class Activation:
    kind: str
    input: Term
    call: str = ""  # "torch.nn.functional.gelu"; "" when there is none
    options: tuple[str, ...] = ()


def activation(flow: Flow, term: Term) -> Activation | None:
    """The torch activation that a term spells out, or None."""
    if term.op in ("mul", "neg"):
        return _product(*factors(term))
    if term.op in ("div", "where", "maximum", "log", "log1p"):
        return _quotient(term) or _piecewise(term) or _softplus_of(term)
    return None


def _functional(kind: str, x: Term, name: str, *options: str) -> Activation:
    return Activation(kind, x, f"torch.nn.functional.{name}", options)


def _product(constant: float, rest: list[Term]) -> Activation | None:
    """``x * something of x``."""
    if len(rest) != 2:
        return None
    for x, gate in (rest, rest[::-1]):
        if close(constant, 0.5) and gate.op == "add":
            found = _gelu(x, gate)
            if found is not None:
                return found
        if constant == 1:
            inside = sigmoid_of(gate)
            if inside is x:
                return _functional("SiLU", x, "silu")
            if inside is not None and (line := polynomial(inside, x)) is not None and _is(line, {1: 1.702}):
                return Activation("An approximation of GELU", x)
            if gate.op == "tanh" and softplus_of(gate.args[0]) is x:
                return _functional("Mish", x, "mish")
        if close(constant, 1 / 6) and gate.op in ("relu6", "clamp"):
            line = polynomial(gate.args[0], x)
            ends = dict(gate.value) if gate.op == "clamp" else {"min": 0, "max": 6}
            if line is not None and _is(line, {0: 3.0, 1: 1.0}) and ends == {"min": 0, "max": 6}:
                return _functional("Hard swish", x, "hardswish")
    return None


def _gelu(x: Term, gate: Term) -> Activation | None:
    for one, curve in (gate.args, gate.args[::-1]):
        if one.number != 1 or curve.op not in ("tanh", "erf"):
            continue
        inside = polynomial(curve.args[0], x)
        root = math.sqrt(2 / math.pi)
        if inside is not None and curve.op == "tanh" and _is(inside, {1: root, 3: root * 0.044715}):
            return _functional("GELU", x, "gelu", 'approximate="tanh"')
        if inside is not None and curve.op == "erf" and _is(inside, {1: math.sqrt(0.5)}):
            return _functional("GELU", x, "gelu")
    return None


def _is(found: dict[int, float], wanted: dict[int, float]) -> bool:
    given = {power: value for power, value in found.items() if value}
    return given.keys() == wanted.keys() and all(close(given[power], wanted[power]) for power in wanted)


def sigmoid_of(term: Term) -> Term | None:
    """``x`` of ``sigmoid(x)`` and of ``1 / (1 + exp(-x))``."""
    if term.op == "sigmoid":
        return term.args[0]
    if term.op == "div" and term.args[0].number == 1:
        return _one_plus_exp(term.args[1], minus=True)
    return None


def softplus_of(term: Term) -> Term | None:
    """``x`` of ``softplus(x)`` and of ``log(1 + exp(x))``."""
    if term.op == "softplus":
        return term.args[0]
    if term.op == "log1p" and term.args[0].op == "exp":
        return term.args[0].args[0]
    return _one_plus_exp(term.args[0], minus=False) if term.op == "log" else None


def _one_plus_exp(term: Term, minus: bool) -> Term | None:
    if term.op != "add":
        return None
    for one, power in (term.args, term.args[::-1]):
        if one.number == 1 and power.op == "exp":
            inside = power.args[0]
            if minus:
                return inside.args[0] if inside.op == "neg" else None
            return inside
    return None


def _softplus_of(term: Term) -> Activation | None:
    inside = softplus_of(term)
    return _functional("Softplus", inside, "softplus") if inside is not None else None


def _quotient(term: Term) -> Activation | None:
    """SiLU, sigmoid, tanh and softmax as fractions."""
    if term.op != "div":
        return None
    above, below = term.args
    inside = _one_plus_exp(below, minus=True)
    if inside is not None and above is inside:
        return _functional("SiLU", inside, "silu")
    if inside is not None and above.number == 1:
        return Activation("Sigmoid", inside, "torch.sigmoid")
    if above.op == "exp" and below.op == "sum" and below.args[0] is above and below.value[1]:
        dims = below.value[0]
        x = _without_maximum(above.args[0], dims)
        return (
            Activation("Softmax", x, "torch.softmax", (f"dim={dims[0]}",))
            if dims and len(dims) == 1
            else None
        )
    if above.op == "sub" and below.op == "add" and set(above.args) == set(below.args):
        rising, falling = above.args
        x = rising.args[0] if rising.op == falling.op == "exp" else rising
        if x is not rising and falling.args[0].op == "neg" and falling.args[0].args[0] is x:
            return Activation("Tanh", x, "torch.tanh")
    return None


def _without_maximum(term: Term, dims: tuple[int, ...] | None) -> Term:
    """``x`` of ``x - x.amax(dim, keepdim=True)``: softmax subtracts it itself."""
    if term.op != "sub":
        return term
    x, maximum = term.args
    if (maximum.op == "attr" and maximum.value == "values") or (
        maximum.op == "index" and maximum.args[1].number == 0
    ):
        maximum = maximum.args[0]
    same = maximum.op in ("amax", "max_along") and maximum.args[0] is x and maximum.value == (dims, True)
    return x if same else term


def _piecewise(term: Term) -> Activation | None:
    """Leaky ReLU and ELU."""
    if term.op == "maximum":
        for x, other in (term.args, term.args[::-1]):
            slope, rest = factors(other)
            if rest == [x] and 0 < slope < 1:
                return _functional("Leaky ReLU", x, "leaky_relu", f"{slope:g}")
    if term.op != "where" or term.args[0].op not in ("gt", "ge"):
        return None
    test, above, below = term.args
    x = test.args[0]
    if test.args[1].number != 0 or above is not x:
        return None
    scale, rest = factors(below)
    if rest == [x]:
        return _functional("Leaky ReLU", x, "leaky_relu", f"{scale:g}")
    if len(rest) == 1 and (rest[0].op == "expm1" or _minus_one(rest[0], x)):
        same = rest[0].args[0] is x or rest[0].op == "sub"
        return _functional("ELU", x, "elu", *([f"{scale:g}"] if scale != 1 else [])) if same else None
    return None


def _minus_one(term: Term, x: Term) -> bool:
    return (
        term.op == "sub"
        and term.args[1].number == 1
        and term.args[0].op == "exp"
        and term.args[0].args[0] is x
    )
