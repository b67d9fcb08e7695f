"""What the user set: the editor's ``warpline`` section over ``[tool.warpline]`` over our defaults."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from warpline.model.problem import Problem
from warpline.view.hints import THRESHOLD, WORDING


@dataclass(frozen=True, slots=True)
class Settings:
    """See PROTOCOL.md. ``threshold`` in percent of the step."""

    hints: bool = True
    threshold: float = THRESHOLD
    wording: str = WORDING
    lenses: bool = True
    diagnostics: bool = True
    python: str = ""
    steps: int = 5
    warmup: int | None = None
    timeout: float | None = None
    launcher: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    include: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    when_busy: str = "refuse"
    budget: float = 300.0  # seconds, for the search for the best set of fixes
    problem: str = ""  # why a source of settings could not be read


#: Setting of the client -> (field, accepted types). ``launcher`` and ``include`` are handled apart.
_KEYS: dict[str, tuple[str, tuple[type, ...]]] = {
    "hints.enabled": ("hints", (bool,)),
    "hints.threshold": ("threshold", (int, float)),
    "hints.wording": ("wording", (str,)),
    "lenses.enabled": ("lenses", (bool,)),
    "diagnostics.enabled": ("diagnostics", (bool,)),
    "python": ("python", (str,)),
    "steps": ("steps", (int,)),
    "warmup": ("warmup", (int,)),
    "timeout": ("timeout", (int, float)),
    "env": ("env", (dict,)),
    "ignore": ("ignore", (list,)),
    "include": ("include", (list,)),
    "launcher": ("launcher", (list, str)),
    "profile.whenBusy": ("when_busy", (str,)),
    "tune.budget": ("budget", (int, float)),
}


def merged(folder: Path, section: object) -> Settings:
    """The settings of a folder; ``section`` is what the client answered for ``warpline``."""
    base = of_project(folder)
    if not isinstance(section, Mapping):
        return base
    changes: dict[str, Any] = {}
    for key, (name, types) in _KEYS.items():
        value = _find(section, key)
        # Null and empty mean "not set": then the project's own setting holds.
        if value in (None, "", [], {}) or not isinstance(value, types):
            continue
        if isinstance(value, bool) and bool not in types:
            continue
        changes[name] = _frozen(_launcher(value) if name == "launcher" else value)
    if "include" in changes:
        changes["include"] = tuple(str(folder / entry) for entry in changes["include"])
    return replace(base, **changes)


def of_project(folder: Path) -> Settings:
    """What ``[tool.warpline]`` says; a file that cannot be read is a ``problem``, not an error."""
    from warpline import project

    try:
        found = project.settings(folder)
    except Problem as problem:
        return Settings(problem=str(problem))
    return Settings(
        threshold=found.hints,
        python=found.python,
        steps=found.steps,
        warmup=found.warmup,
        timeout=found.timeout,
        launcher=_launcher(found.launcher),
        include=found.include,
        ignore=found.ignore,
    )


def _find(section: Mapping[Any, Any], key: str) -> Any:
    """``a.b`` as ``{"a": {"b": …}}`` or as ``{"a.b": …}``."""
    if key in section:
        return section[key]
    value: Any = section
    for part in key.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _launcher(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        try:
            return tuple(shlex.split(value))
        except ValueError:
            return (value,)
    return tuple(map(str, value))


def _frozen(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(str(entry) for entry in value)
    if isinstance(value, dict):
        return {str(name): str(entry) for name, entry in value.items()}
    return value
