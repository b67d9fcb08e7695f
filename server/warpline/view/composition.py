"""What the step's time goes to, in one line."""

from __future__ import annotations

from dataclasses import asdict

from warpline.model.report import Composition
from warpline.view import units


def line(composition: Composition | None) -> str:
    """``loader 55 %, host 12 %, …``, in the order of a step; parts of nothing are left out. "" where none is
    known."""
    if composition is None:
        return ""
    parts = {name.removesuffix("_ms"): value for name, value in asdict(composition).items()}
    whole = sum(parts.values())
    said = (f"{name} {units.percent(value / whole)}" for name, value in parts.items() if value > 0 < whole)
    return ", ".join(said)
