"""TOML files, read in one way: a Problem in one line for whatever is wrong with one."""

from __future__ import annotations

import importlib
import re
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
    """``values`` of ``path`` as ``kind``. ``table``: where in the file they stand, for the message; keys are
    written with dashes there.

    Raises Problem, which names the key, for a value of another type or out of range.
    """
    try:
        return msgspec.convert(values, kind)
    except msgspec.ValidationError as error:
        raise Problem(f"{path}: {_plain(str(error), table)}") from None


def _plain(said: str, table: str) -> str:
    """msgspec's message in words for people who write TOML and no Python."""
    what, _, place = said.partition(" - at `$")
    key = place.rstrip("`").lstrip(".")
    key = f"{table}.{key.replace('_', '-')}" if table else key
    if field := _FIELD.fullmatch(what):
        return f"{key or 'it'} {'has an unknown' if field[1] else 'lacks the'} key {field[2]}"
    if not (expected := _EXPECTED.fullmatch(what)):
        return f"{key}: {what}"
    wanted = " or ".join(_KINDS.get(name, name) for name in expected[1].split(" | ") if name != "null")
    bound = f" {_BOUNDS[expected[2]]} {float(expected[3]):g}" if expected[2] else ""
    return f"{key} must be {wanted}{bound}"


_FIELD = re.compile(r"Object (?:contains (unknown)|missing required) field `(.*)`")
_EXPECTED = re.compile(r"Expected `(.*?)`(?: (>=|>) ([\d.]+))?(?:, got `.*`)?")
_KINDS = {
    "int": "a whole number", "float": "a number", "str": "text in quotes", "array": "a list in brackets",
    "object": "a table",
}  # fmt: skip
_BOUNDS = {">=": "of at least", ">": "above"}
