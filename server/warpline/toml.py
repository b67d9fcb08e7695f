"""TOML files, read in one way: a Problem in one line for whatever is wrong with one."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from warpline.model.problem import Problem

#: The same module under its older name before Python 3.11.
tomllib = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")

Kind = TypeVar("Kind")


def parse(text: str) -> dict[str, Any]:
    """Raises ValueError for what is no TOML."""
    found: dict[str, Any] = tomllib.loads(text)
    return found


def read(path: Path) -> dict[str, Any]:
    """Raises Problem for a file that cannot be read or is no TOML."""
    try:
        return parse(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Problem(f"cannot read {path}: {(error.strerror or str(error)).lower()}") from None
    except ValueError as error:  # TOMLDecodeError and UnicodeDecodeError are ones
        raise Problem(f"{path} is not valid TOML: {error}") from None


def convert(path: Path, values: Mapping[str, Any], kind: type[Kind], table: str = "") -> Kind:
    """``values`` of ``path`` as ``kind``. ``table``: where in the file they stand, for the message.

    Raises Problem, which names the key, for a value of another type or out of range.
    """
    try:
        return msgspec.convert(values, kind)
    except msgspec.ValidationError as error:
        inside = f" at `{table}." if table else " at `"
        said = str(error).replace(" - at `$.", inside).replace(" - at `$`", "")
        raise Problem(f"{path}: {said[:1].lower()}{said[1:]}") from None
