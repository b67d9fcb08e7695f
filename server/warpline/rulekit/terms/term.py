"""Terms: what an expression computes, however it was spelled.

Equal terms are one object (interned), so comparing is ``is`` and a term may be shared: straight
code that feeds a value to itself fifty times stays small. ``Terms`` folds what is plain arithmetic
and brings the spellings of one thing to one form: ``x * x``, ``x.pow(2)`` and ``torch.square(x)``
are ``pow(x, 2)``; ``a / b.sqrt()`` and ``a * torch.rsqrt(b)`` are ``mul(a, rsqrt(b))``.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

Number = int | float
#: Operations one after the other that are followed: chosen, far more than a formula has.
_DEEPEST = 200


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """``op`` applied to ``args``; ``value`` holds what is not a term (dims, a constant, a name)."""

    op: str
    args: tuple[Term, ...] = ()
    value: Any = None  # hashable

    @property
    def number(self) -> float | None:
        """The value of a constant that is a number."""
        if self.op == "const" and isinstance(self.value, Number) and not isinstance(self.value, bool):
            return float(self.value)
        return None


class Terms:
    """Makes terms. Two made by different ``Terms`` are never equal."""

    def __init__(self) -> None:
        self._known: dict[tuple[Hashable, ...], Term] = {}
        self._depth: dict[Term, int] = {}
        self._fresh = 0

    def make(self, op: str, *args: Term, value: Hashable = None) -> Term:
        """The term of an operation. Two with the same arguments are the same object. One that is deeper than
        any formula is made of what is not known, so that what follows terms need not end by itself."""
        # The type keeps 1, 1.0 and True apart.
        key = (op, tuple(id(arg) for arg in args), type(value), value)
        term = self._known.get(key)
        if term is None:
            depth = 1 + max((self._depth[arg] for arg in args if arg in self._depth), default=0)
            term = Term(op, args, value) if depth < _DEEPEST else self.fresh("opaque")
            self._known[key] = term
            self._depth[term] = depth if depth < _DEEPEST else 1
        return term

    def fresh(self, op: str, *args: Term, value: Hashable = None) -> Term:
        """A term equal to no other: a call that may give something else the next time."""
        self._fresh += 1
        return self.make(op, *args, value=(value, self._fresh))

    def const(self, value: Hashable) -> Term:
        """A number, string or None written in the source."""
        return self.make("const", value=value)

    # -- arithmetic --------------------------------------------------------------------------

    def add(self, a: Term, b: Term) -> Term:
        """``a + b``, computed where both are numbers."""
        x, y = a.number, b.number
        return self.const(x + y) if x is not None and y is not None else self.make("add", a, b)

    def sub(self, a: Term, b: Term) -> Term:
        """``a - b``, computed where both are numbers."""
        x, y = a.number, b.number
        return self.const(x - y) if x is not None and y is not None else self.make("sub", a, b)

    def mul(self, a: Term, b: Term) -> Term:
        """``a * b``, computed where both are numbers; ``a * a`` is a power."""
        x, y = a.number, b.number
        if x is not None and y is not None:
            return self.const(x * y)
        return self.pow(a, self.const(2)) if a is b else self.make("mul", a, b)

    def div(self, a: Term, b: Term) -> Term:
        """``a / b``. A number below the line becomes a factor, a square root ``rsqrt``."""
        x, y = a.number, b.number
        if x is not None and y:
            return self.const(x / y)
        if y:
            return self.make("mul", a, self.const(1 / y))
        if b.op == "sqrt":
            inverse = self.make("rsqrt", b.args[0])
            return inverse if x == 1 else self.make("mul", a, inverse)
        return self.make("div", a, b)

    def neg(self, a: Term) -> Term:
        """``-a``, computed where it is a number."""
        return self.const(-a.value) if a.number is not None else self.make("neg", a)

    def pow(self, a: Term, b: Term) -> Term:
        """``a ** b``, computed where both are numbers of moderate size; 0.5 is a root, -0.5 ``rsqrt``."""
        x, y = a.number, b.number
        if x is not None and y is not None and (x > 0 or y == int(y)) and (x or y > 0) and abs(y) < 64:
            return self.const(x**y)
        if y == 0.5:
            return self.sqrt(a)
        if y == -0.5:
            return self.make("rsqrt", a)
        return self.make("pow", a, self.const(int(y)) if y is not None and y == int(y) else b)

    def sqrt(self, a: Term) -> Term:
        """The square root, computed where ``a`` is a number."""
        return (
            self.const(math.sqrt(a.number))
            if a.number is not None and a.number >= 0
            else self.make("sqrt", a)
        )


def factors(term: Term) -> tuple[float, list[Term]]:
    """A product as its constant and its other factors; a minus sign is -1."""
    constant, rest = 1.0, []
    todo = [term]
    while todo:
        item = todo.pop()
        if item.op == "mul":
            todo.extend(reversed(item.args))
        elif item.op == "neg":
            constant = -constant
            todo.append(item.args[0])
        elif item.number is not None:
            constant *= item.number
        else:
            rest.append(item)
    return constant, rest


def without_casts(term: Term) -> Term:
    """What is converted, without conversions of its type around it."""
    while term.op == "cast":
        term = term.args[0]
    return term
