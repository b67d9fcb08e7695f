"""The cells of a notebook as files, so that their lines have a place as any other line has."""

from __future__ import annotations

import linecache
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from warpline.capture.inprocess import Cells
from warpline.model.problem import Problem
from warpline.notebook.code import file_name
from warpline.runs import stay_inside, write

_NAME = re.compile(r"(?:[^\s:]*/)?cell-(\d+)\.py:(\d+)")


def shell() -> Any:
    """IPython's shell, if this process runs one."""
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython is not None else None


def cells(runs: Path) -> Cells:
    """The cells that ran so far, each in its own file beside ``runs``; none outside IPython.

    Only IPython's compiler knows the file name of a cell's code (``_filename_map``, IPython 7.23 and later);
    its text is what ``linecache`` shows in tracebacks. Raises Problem where a link leads their folder out of
    the project."""
    here = shell()
    numbers: Mapping[str, int] = getattr(getattr(here, "compile", None), "_filename_map", None) or {}
    folder = runs.parent / "notebooks" / (file_name(here.user_ns) if here is not None else "")
    if numbers:
        stay_inside(folder, runs.parent)
    files, texts = {}, {}
    for name, number in numbers.items():
        text = "".join(linecache.getlines(name))
        path = folder / f"cell-{number}.py"
        if text and _write(path, text):
            files[name] = str(path)
            texts[str(path)] = text
    return Cells(files, texts)


def placed(words: str) -> str:
    """``words`` with cells in the place of lines of their files."""
    return _NAME.sub(r"Cell [\1]:\2", words)


def _write(path: Path, text: str) -> bool:
    try:
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            write(path, text.encode())
    except (OSError, UnicodeError, Problem):
        return False
    return True
