"""Assumed figures for missing measurements (``costs.json``), and chosen bounds (``bounds.json``).

An assumed figure has its source: ``low`` to ``high`` is the range of ``samples`` measurements, which
``script`` repeats; None and 0 if it was never measured. ``benchmarks/fit.py`` prints both tables, and the
figures without a source. A prediction that uses one of those is a bound or an estimate, and has the wide
interval of its kind.

A chosen bound is our decision on how close is close enough, or how much is too much. It cannot be measured,
so it has no range.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Assumed:
    what: str
    value: float
    low: float | None
    high: float | None
    samples: int
    script: str


@dataclass(frozen=True, slots=True)
class Chosen:
    what: str
    value: float


@cache
def table() -> dict[str, Assumed]:
    """The assumed figures by name. Read once."""
    return {name: Assumed(**fields) for name, fields in _read("costs.json").items()}


@cache
def bounds() -> dict[str, Chosen]:
    """The chosen bounds by name. Read once."""
    return {name: Chosen(**fields) for name, fields in _read("bounds.json").items()}


def value(name: str) -> float:
    """The assumed figure ``name``. Raises KeyError if the table lacks it."""
    return table()[name].value


def high(name: str) -> float:
    """The upper end of the range of ``name``. Raises KeyError if the table lacks it or has no range."""
    found = table()[name].high
    if found is None:
        raise KeyError(name)
    return found


def bound(name: str) -> float:
    """The chosen bound ``name``. Raises KeyError if the table lacks it."""
    return bounds()[name].value


def _read(file: str) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name(file).read_text(encoding="utf-8"))
    return found
