"""Messages that contain only measured numbers: templates filled from Evidence."""

from __future__ import annotations

import re
import string
from collections.abc import Mapping

from warpline.model import units
from warpline.model.report import Evidence

#: A number that is not part of a name (``bf16``, ``conv2d``, ``float32`` are names).
NUMBER = re.compile(r"(?<![\w.-])\d+(?:\.\d+)?(?![\w]|\.\d)")


def ms(metric: str, value: float) -> Evidence:
    """Milliseconds per step."""
    return Evidence(metric, float(value), "ms")


def seconds(metric: str, value: float) -> Evidence:
    """Seconds, once: no part of a step."""
    return Evidence(metric, float(value), "s")


def percent(metric: str, value: float, of: str = "step") -> Evidence:
    """``value`` percent (0 to 100) of ``of``."""
    return Evidence(metric, float(value), f"percent of {of}")


def count(metric: str, value: float, unit: str = "count") -> Evidence:
    """A number of ``unit``: workers, kernels, calls per step, …"""
    return Evidence(metric, float(value), unit)


def size(metric: str, value: float) -> Evidence:
    """Bytes."""
    return Evidence(metric, float(value), "bytes")


def shown(evidence: Evidence) -> str:
    """How the number is written in a message: ``40.0 ms``, ``61 %``, ``1.2 GiB``, ``8``."""
    value, unit = evidence.value, evidence.unit
    if unit == "ms":
        return units.ms(value)
    if unit == "s":
        return units.seconds(value)
    if unit == "bytes":
        return units.size(value)
    return units.percentage(value) if unit.startswith("percent") else units.count(value)


def message(template: str, evidence: Mapping[str, Evidence]) -> str:
    """``template`` with ``{key}`` replaced by the evidence of that key.

    Raises ValueError for a number written into the template, and KeyError for an unknown key:
    both are mistakes in the rule.
    """
    written = "".join(part for part, *_ in string.Formatter().parse(template))
    if found := NUMBER.search(written):
        raise ValueError(f"the number {found.group()} in a message is not in its evidence")
    return template.format_map({key: shown(value) for key, value in evidence.items()})
