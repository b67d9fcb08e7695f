"""Figures that are assumed where nothing was measured: ``costs.json``, each with what is known of it.

``low`` to ``high`` is the range that was seen in ``samples`` measurements that ``script`` makes; None and 0
where nobody has measured it. ``benchmarks/fit.py`` prints the table, and says which of them still stand on
nothing. A prediction that rests on one of those is a bound or an estimate, and its interval as wide as one.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Assumed:
    what: str
    value: float
    low: float | None
    high: float | None
    samples: int
    script: str


@cache
def table() -> dict[str, Assumed]:
    found = json.loads(Path(__file__).with_name("costs.json").read_text(encoding="utf-8"))
    return {name: Assumed(**fields) for name, fields in found.items()}


def value(name: str) -> float:
    """The figure of that name. Raises KeyError for one that is not in the table."""
    return table()[name].value
