"""Assumed figures for missing measurements (``costs.json``) and chosen bounds (``bounds.json``), each with
its source.

``low`` to ``high`` is the range that was seen in ``samples`` measurements that ``script`` makes; None and 0
where it was never measured. ``benchmarks/fit.py`` prints both tables, and says which figures have no source
yet. A prediction that rests on one of those is a bound or an estimate, and its interval as wide as one.

A bound is where we draw a line: how near is near enough, how much is too much. No measurement could
contradict it, so it has none.
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
    """The figure of that name. Raises KeyError for one that is not in the table."""
    return table()[name].value


def bound(name: str) -> float:
    """The bound of that name. Raises KeyError for one that is not in the table."""
    return bounds()[name].value


def _read(file: str) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name(file).read_text(encoding="utf-8"))
    return found
