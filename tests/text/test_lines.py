"""A line is what Python and editors take for one, wherever source text is split."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from warpline.text.lines import line_at, lines_of, split, starts

#: What ``str.splitlines`` breaks lines at and Python does not.
NO_ENDS = ["\f", "\v", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"]
SERVER = Path(__file__).resolve().parents[2] / "server/warpline"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("other", NO_ENDS)
def test_lines_are_those_of_python(end: str, other: str) -> None:
    text = end.join(["a = 1", f"b = 'x'  # {other} y", "c = 3", ""])
    assert ast.parse(text).body[-1].lineno == 3
    assert lines_of(text)[2] == line_at(text, 3) == "c = 3"
    assert "".join(split(text)) == text and len(split(text)) == len(lines_of(text)) == 4
    assert [text[at:][:1] for at in starts(text)] == ["a", "b", "c", ""]


def test_no_line_outside_the_text() -> None:
    assert [line_at("a\nb", number) for number in (0, 1, 2, 3)] == ["", "a", "b", ""]
    assert line_at(None, 1) == ""


def test_an_overlaid_file_has_the_lines_that_python_reads(tmp_path: Path) -> None:
    """``inspect`` and triton read a function's source from ``linecache``."""
    import linecache
    import runpy

    path = tmp_path / "edited.py"
    path.write_text("a = 1\n\f\nclass B:\n    x = 2\n", newline="")
    code = (
        "import runpy, linecache\n"
        f"module = runpy.run_path({str(SERVER / 'capture/runner/overlay.py')!r})\n"
        f"module['install']({{{str(path)!r}: {path.read_text()!r}}}, '')\n"
        f"print(linecache.getline({str(path)!r}, 3), end='')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout == "class B:\n" == linecache.getline(str(path), 3)
    assert runpy is not None


#: Not source text: what another program printed, an `.env` file, and one line of an error.
OUTPUT = {"__main__", "process", "engine", "family", "cli", "attach", "nsight", "probe", "answers",
          "sampling", "edits", "profiling", "child", "frames", "launching", "stepping"}  # fmt: skip


def test_source_is_split_in_one_place() -> None:
    found = {path.stem for path in SERVER.rglob("*.py") if ".splitlines(" in path.read_text(encoding="utf-8")}
    assert found <= OUTPUT
