"""Run the script exactly as ``python script.py args`` or ``python -m module args`` would."""

from __future__ import annotations
import __future__

import ast
import builtins
import io
import os
import runpy
import sys
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from types import CodeType
from typing import TYPE_CHECKING, Any

from ...wire.control import Purpose
from . import imports

if TYPE_CHECKING:
    from .control import Control

_run_module_as_main: Any = runpy._run_module_as_main  # type: ignore[attr-defined]


def run(control: Control, first_line_is_here: Callable[[], None]) -> None:
    """``first_line_is_here`` is called before the request's ``first_line`` runs, where it names one."""
    request = control.request
    target, argv = request.target, control.argv
    main = sys.modules["__main__"].__dict__
    kept: dict[str, Any] = {name: {} for name in ("__annotations__",) if name in main}  # not in every Python
    main.clear()
    main.update(kept)
    main.update(
        __name__="__main__",
        __doc__=None,
        __package__=None,
        __loader__=None,
        __spec__=None,
        __builtins__=builtins,
    )
    safe = bool(getattr(sys.flags, "safe_path", False) or sys.flags.isolated)
    if request.module:
        _path_entry(os.getcwd(), safe)
        sys.argv = ["-m", *argv]
        _original_arguments(["-m", target], argv)
        _run_module_as_main(target)
        return
    typed = request.typed or target
    sys.argv = [typed, *argv]
    _original_arguments([typed], argv)
    if os.path.isdir(target) or not _is_source(target):
        sys.path.insert(0, target)
        imports.give_way(target)
        _run_module_as_main("__main__", False)
        return
    # A notebook's cells are written into a file that lies elsewhere; they import from the working folder.
    _path_entry(os.getcwd() if request.first_line else os.path.dirname(os.path.realpath(target)), safe)
    with io.open_code(target) as file:
        text = file.read()
    main["__file__"] = target
    main["__cached__"] = None
    main["__loader__"] = SourceFileLoader("__main__", target)
    if not request.first_line:
        if request.loop is not None or control.purpose is Purpose.LOOPS:  # see ``steps.compiling``
            exec(main["__loader__"].source_to_code(text, target), main)
            return
        exec(compile(text, target, "exec", dont_inherit=True), main)
        return
    before, after = _divided(text, target, request.first_line)
    exec(before, main)
    first_line_is_here()
    exec(after, main)


def _divided(text: bytes, target: str, first_line: int) -> tuple[CodeType, CodeType]:
    """The statements before ``first_line``, and those from there on, under the same ``__future__``."""
    statements = ast.parse(text, target).body
    before = ast.Module([one for one in statements if one.lineno < first_line], [])
    after = ast.Module([one for one in statements if one.lineno >= first_line], [])
    begun = compile(before, target, "exec", dont_inherit=True)
    futures = sum(getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
    return begun, compile(after, target, "exec", begun.co_flags & futures, dont_inherit=True)


def _path_entry(folder: str, safe: bool) -> None:
    if not safe:
        sys.path.insert(0, folder)
        imports.give_way(folder)


def _original_arguments(first: list[str], argv: list[str]) -> None:
    if hasattr(sys, "orig_argv"):
        sys.orig_argv = [sys.orig_argv[0], *first, *argv]


def _is_source(path: str) -> bool:
    """False for a zip archive with a ``__main__`` in it."""
    with open(path, "rb") as file:
        return file.read(4) != b"PK\x03\x04"
