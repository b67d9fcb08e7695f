"""Numbers as words, for what a person sees: :mod:`warpline.model.units`, where rules find them too."""

from __future__ import annotations

from warpline.model.units import (
    count,
    evidence,
    gain,
    interval,
    measured,
    milliseconds,
    ms,
    percent,
    percentage,
    rate,
    seconds,
    size,
    slowdown,
    speedup,
)

__all__ = [
    "count",
    "evidence",
    "gain",
    "interval",
    "measured",
    "milliseconds",
    "ms",
    "percent",
    "percentage",
    "rate",
    "seconds",
    "size",
    "slowdown",
    "speedup",
]
