"""``budgets.toml`` as it is read::

baseline = "perf/main"       # a run, or a folder of runs; relative to this file
noise_percent = 3            # two runs of the same code differ by so much here

[step]
max_ms = 120
max_increase_percent = 5     # over the baseline

[[function]]
name = "Block.forward"       # the lines of its own body
file = "model.py"            # only where two files have one of that name
max_percent = 30             # of the step

[[line]]
file = "train.py"
text = "loss.backward()"     # what the line says, so that it is found wherever it moves; or line = 31
max_ms = 40
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from warpline import toml
from warpline.model.problem import Problem

Above = Annotated[float, Meta(gt=0)]
AtLeastNothing = Annotated[float, Meta(ge=0)]


class Limit(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a budget allows, in ms of a step. At least one of the limits is set."""

    max_ms: Above | None = None
    max_percent: Above | None = None  # of the run's own step; not for the step itself
    max_increase_percent: AtLeastNothing | None = None  # over the same code in the baseline


class FunctionLimit(Limit, frozen=True, forbid_unknown_fields=True, kw_only=True):
    name: str
    file: str = ""


class LineLimit(Limit, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A limit for one line, named by its ``text`` or its number. ``function`` chooses among lines with the
    same text."""

    file: str
    text: str = ""
    line: Annotated[int, Meta(ge=1)] | None = None
    function: str = ""


class Budgets(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    baseline: str = ""
    noise_percent: AtLeastNothing = 0.0
    step: Limit | None = None
    function: tuple[FunctionLimit, ...] = ()
    line: tuple[LineLimit, ...] = ()


def read(path: Path) -> Budgets:
    """Raises Problem, in one line that names the place, for a file that does not say what is meant."""
    budgets = toml.convert(path, toml.read(path), Budgets)
    _complete(path, budgets)
    return budgets


def _complete(path: Path, budgets: Budgets) -> None:
    limits: list[tuple[str, Limit]] = [("step", budgets.step)] if budgets.step is not None else []
    limits += [(f"function {one.name}", one) for one in budgets.function]
    limits += [(f"line {one.text or one.line} of {one.file}", one) for one in budgets.line]
    if not limits:
        raise Problem(f"{path} has no budget: [step], [[function]] or [[line]]")
    for name, limit in limits:
        if limit.max_ms is limit.max_percent is limit.max_increase_percent is None:
            raise Problem(f"{path}: {name} has no limit: max_ms, max_percent or max_increase_percent")
    if budgets.step is not None and budgets.step.max_percent is not None:
        raise Problem(f"{path}: the step is always 100 % of itself: max_percent is for functions and lines")
    for one in budgets.line:
        if bool(one.text) == (one.line is not None):
            raise Problem(f"{path}: a line of {one.file} needs either text or line")
