"""The project's settings: ``[tool.warpline]`` in the nearest ``pyproject.toml``."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from warpline import toml
from warpline.model.problem import Problem


@dataclass(frozen=True, slots=True)
class Settings:
    """``[tool.warpline]``, every key with its default. Keys are written with dashes in the file.

    ``folder`` is where the ``pyproject.toml`` lies (the folder asked about when there is none).
    """

    folder: str = ""
    include: tuple[str, ...] = ()  # more folders with files of the user, absolute here
    ignore: tuple[str, ...] = ()  # rules that stay silent in this project
    hints: Annotated[float, Meta(ge=0)] = 1.0  # lines below this share of the step (percent) show no hint
    python: str = ""  # interpreter that runs the script, absolute or a name on the PATH; "" = found by itself
    launcher: str = ""  # e.g. "torchrun --nproc-per-node 2"
    steps: Annotated[int, Meta(ge=1)] = 5
    warmup: Annotated[int, Meta(ge=0)] | None = None
    timeout: Annotated[float, Meta(gt=0)] | None = None
    keep_runs: Annotated[int, Meta(ge=1)] = 100  # runs that stay; the newest of each command always does
    keep_days: Annotated[float, Meta(gt=0)] = 90  # and for how long
    keep_mb: Annotated[float, Meta(gt=0)] = 1000  # and how much room all of them take


def settings(folder: Path) -> Settings:
    """The settings that hold in ``folder``. Raises Problem for a file that cannot be understood."""
    folder = Path(absolute(folder))
    for place in (folder, *folder.parents):
        path = place / "pyproject.toml"
        if path.is_file():
            return _read(path)
    return Settings(folder=str(folder))


def roots(script: Path, cwd: Path) -> tuple[str, ...]:
    """The folders with the user's files: the working folder and the script's own."""
    found = []
    for folder in (Path(absolute(script)).parent, Path(absolute(cwd))):
        if str(folder) not in found:
            found.append(str(folder))
    return tuple(found)


def absolute(path: str | Path) -> str:
    """Without ``..``, links left alone: a venv's python, resolved, is another interpreter."""
    return os.path.abspath(path)


def _read(path: Path) -> Settings:
    document = toml.read(path)
    table = document.get("tool", {}).get("warpline", {})
    if not isinstance(table, dict):
        raise Problem(f"{path}: tool.warpline must be a table")
    known = {field.name for field in fields(Settings)} - {"folder"}
    values: dict[str, Any] = {}
    for key, value in table.items():
        name = key.replace("-", "_")
        if name not in known:
            there = ", ".join(sorted(each.replace("_", "-") for each in known))
            raise Problem(f"{path}: unknown setting tool.warpline.{key} (known: {there})")
        values[name] = value
    found = toml.convert(path, values, Settings, "tool.warpline")
    include = tuple(absolute(path.parent / Path(entry).expanduser()) for entry in found.include)
    python = (
        absolute(path.parent / Path(found.python).expanduser()) if os.sep in found.python else found.python
    )
    return replace(found, folder=str(path.parent), include=include, python=python)
