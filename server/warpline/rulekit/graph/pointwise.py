"""Operators on numbers, so that a graph can be computed at sample points. A step's formulas are recognised by
what they compute, which is the same in every spelling."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

#: A number as small as this beside a probability only keeps the logarithm finite.
GUARD = 1e-6
#: Operators that do one thing on one side of a number, and another on the other side.
_LIMITS = {
    "relu": (0.0,), "abs": (0.0,), "relu6": (0.0, 6.0), "hardsigmoid": (-3.0, 3.0), "hardswish": (-3.0, 3.0),
}  # fmt: skip
#: The same, of their two arguments.
_SIDES = ("maximum", "minimum", "fmax", "fmin", "gt", "ge", "lt", "le")
_CLAMPS = ("clamp", "clamp_min", "clamp_max")

Numbers = tuple[float, ...]
Pointwise = Callable[..., float]


def sigmoid(x: float) -> float:
    """The logistic function, without overflow for large negative numbers."""
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


def softplus(x: float) -> float:
    """log(1 + exp(x)), without overflow for large numbers."""
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


def _power(base: float, exponent: float) -> float:
    found = base**exponent
    return math.nan if isinstance(found, complex) else float(found)


#: By name, for operators on numbers only.
PLAIN: dict[str, Pointwise] = {
    "mul": lambda a, b: a * b,
    "pow": _power,
    "float_power": _power,
    "neg": lambda a: -a,
    "exp": math.exp,
    "exp2": lambda a: 2**a,
    "expm1": math.expm1,
    "log": math.log,
    "log1p": math.log1p,
    "sqrt": math.sqrt,
    "rsqrt": lambda a: 1 / math.sqrt(a),
    "reciprocal": lambda a: 1 / a,
    "square": lambda a: a * a,
    "tanh": math.tanh,
    "sigmoid": sigmoid,
    "log_sigmoid_forward": lambda a: -softplus(-a),
    "erf": math.erf,
    "erfc": math.erfc,
    "sin": math.sin,
    "cos": math.cos,
    "sinh": math.sinh,
    "cosh": math.cosh,
    "abs": abs,
    "sign": lambda a: (a > 0) - (a < 0),
    "sgn": lambda a: (a > 0) - (a < 0),
    "relu": lambda a: max(a, 0.0),
    "relu6": lambda a: min(max(a, 0.0), 6.0),
    "silu": lambda a: a * sigmoid(a),
    "mish": lambda a: a * math.tanh(softplus(a)),
    "hardsigmoid": lambda a: min(max(a + 3, 0.0), 6.0) / 6,
    "hardswish": lambda a: a * min(max(a + 3, 0.0), 6.0) / 6,
    "maximum": max,
    "minimum": min,
    "fmax": max,
    "fmin": min,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "logical_not": lambda a: not a,
    "bitwise_not": lambda a: not a,
    "logical_and": lambda a, b: bool(a and b),
    "bitwise_and": lambda a, b: bool(a and b),
    "logical_or": lambda a, b: bool(a or b),
    "bitwise_or": lambda a, b: bool(a or b),
    "where": lambda test, a, b: a if test else b,
    "masked_fill": lambda a, test, b: b if test else a,
    "xlogy": lambda a, b: 0.0 if a == 0 else a * math.log(b),
    "lerp": lambda a, b, weight: a + weight * (b - a),
    "hypot": math.hypot,
    "logaddexp": lambda a, b: max(a, b) + math.log1p(math.exp(-abs(a - b))),
}


def _added(sign: int) -> Callable[[Any], Pointwise]:
    def make(named: Any) -> Pointwise:
        alpha = sign * float(named.get("alpha", 1))
        return lambda a, b: a + alpha * b

    return make


def _reversed(named: Any) -> Pointwise:
    alpha = float(named.get("alpha", 1))
    return lambda a, b: b - alpha * a


def _divided(named: Any) -> Pointwise | None:
    return None if named.get("rounding_mode") else lambda a, b: a / b


def _clamped(named: Any) -> Pointwise:
    def clamp(a: float, low: float | None = None, high: float | None = None) -> float:
        low, high = named.get("min", low), named.get("max", high)
        a = a if low is None else max(a, low)
        return a if high is None else min(a, high)

    return clamp


def _softplus(named: Any) -> Pointwise:
    return lambda a, beta=1.0, threshold=20.0: softplus(a * beta) / beta


def _gelu(named: Any) -> Pointwise:
    return gelu_tanh if named.get("approximate") == "tanh" else gelu


def _scaled(divide: bool) -> Callable[[Any], Pointwise]:
    def make(named: Any) -> Pointwise:
        value = float(named.get("value", 1))
        return lambda a, b, c: a + value * (b / c if divide else b * c)

    return make


#: Operators with relevant named arguments (plain numbers).
WITH_NAMED: dict[str, Callable[[Any], Pointwise | None]] = {
    "add": _added(1),
    "sub": _added(-1),
    "rsub": _reversed,
    "div": _divided,
    "true_divide": _divided,
    "clamp": _clamped,
    "clamp_min": lambda named: max,
    "clamp_max": lambda named: min,
    "hardtanh": lambda named: lambda a, low=-1.0, high=1.0: min(max(a, low), high),
    "leaky_relu": lambda named: lambda a, slope=0.01: a if a > 0 else a * slope,
    "elu": lambda named: lambda a, alpha=1.0, *rest: a if a > 0 else alpha * math.expm1(a),
    "softplus": _softplus,
    "gelu": _gelu,
    "addcmul": _scaled(divide=False),
    "addcdiv": _scaled(divide=True),
}
POINTWISE = frozenset(PLAIN) | frozenset(WITH_NAMED)


def function(name: str, named: Any) -> Pointwise | None:
    """The operator as a function of numbers; None where there is none."""
    if name in PLAIN:
        return PLAIN[name]
    return WITH_NAMED[name](named) if name in WITH_NAMED else None


def one_sided(name: str, named: Mapping[str, Any], columns: Sequence[Numbers | None]) -> Iterator[float]:
    """The limits of an operator that all samples are on one side of, so that they do not show what it does on
    the other side: how far each is from 0 or 1 if it clamps, else infinity."""
    first, *others = [column for column in columns if column is not None]
    if name in ("eq", "ne") or (name in _SIDES and not _both_sides(first, others[0])):
        yield math.inf
    for limit in _LIMITS.get(name, ()):
        if not _both_sides(first, (limit,) * len(first)):
            yield math.inf
    if name in _CLAMPS:
        given = [(float(named[key]),) * len(first) for key in ("min", "max") if named.get(key) is not None]
        for limits in (*given, *others):
            if not _both_sides(first, limits):
                yield round(max(min(abs(one), abs(one - 1)) for one in limits), 12)


def _both_sides(numbers: Numbers, limits: Numbers) -> bool:
    return len({number > limit for number, limit in zip(numbers, limits, strict=True)}) > 1


def gelu(x: float) -> float:
    """GELU by the error function (Hendrycks and Gimpel, https://arxiv.org/abs/1606.08415)."""
    return 0.5 * x * (1 + math.erf(x / math.sqrt(2)))


def gelu_tanh(x: float) -> float:
    """GELU by its tanh approximation (the same paper), ``approximate="tanh"`` in torch."""
    return 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
