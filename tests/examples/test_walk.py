"""The commands of "From a task to a command" in docs/existing-tools.md: each is run, or at least parsed."""

from __future__ import annotations

import argparse
import importlib
import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.conftest import ROOT, ExampleRun, warpline
from tests.trace.test_nsys import Export
from warpline.commands import COMMANDS

PAGE = (ROOT / "docs/existing-tools.md").read_text(encoding="utf-8")
TABLE = PAGE.split("## From a task to a command")[1].split("\n## ")[0]
ROWS = [row.split(" | ") for row in TABLE.splitlines() if row.startswith("| ")][1:]
WORDS = [shlex.split(one) for one in re.findall(r"`([^`]*warpline [^`]*)`", TABLE) if "load_ext" not in one]
#: They run a script, need a container, or wait for an agent; other tests do that.
PARSED = ("profile", "mcp")
WRITES = {"report --html": "page.html", "export": "run.json.gz", "check": "warpline.sarif"}


def after_the_name(words: list[str]) -> list[str]:
    """What follows the last word ``warpline``; in a container that is the image's name."""
    return words[len(words) - words[::-1].index("warpline") :]


def test_every_task_has_its_command() -> None:
    tasks = " ".join(row[0] for row in ROWS)
    for task in ("timeline", "Nsight", "notebook", "container", "kernel", "CI", "agent", "trends"):
        assert task in tasks
    assert all("`" in row[1] for row in ROWS)


@pytest.mark.parametrize("words", WORDS, ids=" ".join)
def test_a_command_of_the_table_is_understood(words: list[str]) -> None:
    name, *options = after_the_name(words)
    assert name in COMMANDS
    parser = argparse.ArgumentParser(exit_on_error=False)
    importlib.import_module(f"warpline.commands.{'import_' if name == 'import' else name}").configure(parser)
    parser.parse_args(options)


@pytest.mark.parametrize(
    "words", [words for words in WORDS if after_the_name(words)[0] not in PARSED], ids=" ".join
)
def test_a_command_of_the_table_runs(words: list[str], example_run: ExampleRun, tmp_path: Path) -> None:
    """In the folder of a run; nothing but the file that it names is written beside it."""
    options = after_the_name(words)
    shutil.copytree(example_run.folder / ".warpline", tmp_path / ".warpline")
    (tmp_path / "budgets.toml").write_text("[step]\nmax_ms = 1e9\n", encoding="utf-8")
    if "report.sqlite" in options:
        export = Export(tmp_path / "report.sqlite").connection
        export.commit()
        export.close()
    before = {path.name for path in tmp_path.iterdir()}
    done = warpline(*options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    written = {path.name for path in tmp_path.iterdir()} - before
    named = {name for start, name in WRITES.items() if " ".join(options).startswith(start)}
    assert written == named
    assert all(f"wrote {name}" in done.stdout for name in named)
