"""What is done with runs that are there: shown, compared, written as a page, imported."""

from __future__ import annotations

import gzip
import json
import shutil
import time
from pathlib import Path

import pytest

from tests.conftest import ExampleRun, warpline
from warpline import runs


@pytest.fixture
def folder(example_run: ExampleRun, tmp_path: Path) -> Path:
    """A working folder with a copy of the run, named ``first``, and the script."""
    runs = tmp_path / ".warpline/runs"
    shutil.copytree(example_run.run, runs / "first")
    shutil.copy(example_run.script, tmp_path / "slow.py")
    return tmp_path


def test_profile_printed_the_table(example_run: ExampleRun) -> None:
    text = example_run.stdout
    for part in ("slow.py", "a step, measured without the profiler", "Classifier.forward  slow.py:", "Run: "):
        assert part in text
    assert "\x1b" not in text


def test_show_prints_the_same_again(example_run: ExampleRun) -> None:
    for words in (["show"], ["show", example_run.run.name], ["show", str(example_run.run)]):
        done = warpline(*words, cwd=example_run.folder)
        assert done.returncode == 0, done.stderr
        assert done.stdout == example_run.stdout


def test_show_makes_the_report_anew_byte_for_byte(folder: Path) -> None:
    run = folder / ".warpline/runs/first"
    kept = warpline("show", "--json", "-", cwd=folder).stdout
    for name in ("report.json", "profile.json"):
        (run / name).unlink()
    done = warpline("show", "--json", "-", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout == kept


def test_runs_of_the_project_are_found_from_its_folders(folder: Path) -> None:
    inner = folder / "scripts/deep"
    inner.mkdir(parents=True)
    alone = warpline("show", cwd=inner)
    assert f"no run in {inner}" in alone.stderr, "a folder of no project is on its own"
    (folder / "pyproject.toml").touch()
    for words in (("show",), ("show", "first"), ("fix", "--diff", "--run", "first")):
        done = warpline(*words, cwd=inner)
        assert done.returncode == 0, done.stderr
        assert "slow.py" in done.stdout
    assert not (inner / ".warpline").exists(), "nothing is made where one only looks"
    (inner / ".warpline/runs").mkdir(parents=True)
    assert warpline("show", cwd=inner).returncode == 0, "an empty one is none"


def test_top(folder: Path) -> None:
    done = warpline("show", "--top", "1", cwd=folder)
    assert done.returncode == 0
    assert "more lines:" in done.stdout


def test_compare_with_itself_finds_no_difference(folder: Path) -> None:
    done = warpline("compare", "first", str(folder / ".warpline/runs/first"), cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "1.00x" in done.stdout


def test_compare_takes_the_last_two_of_the_script(folder: Path) -> None:
    alone = warpline("compare", cwd=folder)
    assert alone.returncode == 2
    assert "slow.py before first in" in alone.stderr
    place = folder / ".warpline/runs"
    shutil.copytree(place / "first", place / "second")
    for words in ((), ("first",), ("first", "second")):
        done = warpline("compare", *words, cwd=folder)
        assert done.stdout.splitlines()[:2] == [f"before: {place}/first", f"after:  {place}/second"]


def test_compare_across_an_edit(folder: Path) -> None:
    """The second run is the first with a comment put on top and the loop's line made twice as dear."""
    first, second = folder / ".warpline/runs/first", folder / ".warpline/runs/second"
    warpline("show", cwd=folder)
    shutil.copytree(first, second)
    sources = json.loads((second / "sources.json").read_text())
    (script,) = sources
    sources[script] = "# on top\n" + sources[script]
    (second / "sources.json").write_text(json.dumps(sources))
    report = json.loads((second / "report.json").read_text())
    dear = report["lines"][0]
    for line in report["lines"]:
        line["line"] += 1
    dear["step_ms"] *= 2
    (second / "report.json").write_text(json.dumps(report))
    done = warpline("compare", "--top", "1", "first", "second", cwd=folder)
    assert done.returncode == 0, done.stderr
    (row,) = (line for line in done.stdout.splitlines() if ">" in line)
    assert f"slow.py:{dear['line'] - 1} > {dear['line']}" in row
    assert row.split()[2].startswith("+")


def test_a_page(folder: Path) -> None:
    done = warpline("report", "--html", "page.html", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "wrote page.html: open it in a browser\n"
    text = (folder / "page.html").read_text()
    assert text.startswith("<!doctype html>")
    assert "optimizer.step()" in text


def test_a_broken_run_is_one_line(folder: Path) -> None:
    run = folder / ".warpline/runs/first"
    (run / "manifest.json").write_text("{")
    for name in ("report.json", "profile.json"):
        (run / name).unlink(missing_ok=True)
    done = warpline("show", "first", cwd=folder)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "manifest.json" in line


def test_import_of_a_trace_made_elsewhere(example_run: ExampleRun, tmp_path: Path) -> None:
    """The Chrome trace that torch wrote, without anything of ours beside it."""
    plain = gzip.decompress((example_run.run / "trace.json.gz").read_bytes())
    (tmp_path / "elsewhere.pt.trace.json").write_bytes(plain)
    done = warpline("import", "elsewhere.pt.trace.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    shown = warpline("show", "--json", "-", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    report = json.loads(shown.stdout)
    assert report["format"] == 1
    assert report["notes"]  # what such a trace cannot say
    (run,) = (tmp_path / ".warpline/runs").iterdir()
    # The base that torch counts the trace's times from is months old.
    assert abs(time.time_ns() - runs.manifest(run).created_ns) < 600e9, "it is as old as the import"


def test_import_of_a_folder_leaves_its_runs_alone(folder: Path) -> None:
    done = warpline("import", ".", cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        done.stderr == "warpline: . has no traces (files that end in .pt.trace.json or .pt.trace.json.gz)\n"
    )
    done = warpline("import", ".warpline/runs/first", cwd=folder)
    assert done.returncode == 2
    assert done.stderr == (
        "warpline: .warpline/runs/first is a run already: warpline show .warpline/runs/first\n"
    )


@pytest.mark.parametrize(
    "words",
    [
        ("report", "--html", "."),
        ("report", "--html", "/"),
        ("show", "--json", "."),
        ("check", "--sarif", "/"),
    ],
)
def test_a_folder_is_no_place_to_write_a_file_to(folder: Path, words: tuple[str, ...]) -> None:
    done = warpline(*words, cwd=folder)
    assert done.returncode == 2
    assert done.stderr == f"warpline: cannot write {words[-1]}: it is a folder\n"


def test_report_by_line_operator_and_kernel(example_run: ExampleRun) -> None:
    printed = {
        by: warpline("report", "--by", by, cwd=example_run.folder) for by in ("line", "operator", "kernel")
    }
    assert {by: done.returncode for by, done in printed.items()} == {"line": 0, "operator": 0, "kernel": 0}
    assert printed["line"].stdout == example_run.stdout
    assert "aten::addmm" in printed["operator"].stdout
    assert "There are no kernels, because the device is the CPU" in printed["kernel"].stdout
    for done in printed.values():
        assert "loader " in done.stdout.splitlines()[4]  # what the step's time goes to


def test_top_rows(example_run: ExampleRun) -> None:
    done = warpline("report", "--by", "operator", "--top", "2", cwd=example_run.folder)
    assert done.stdout.count("aten::") == 2
    assert " more: " in done.stdout


def test_the_page_alone_is_compared(example_run: ExampleRun) -> None:
    done = warpline("report", "--against", example_run.run.name, cwd=example_run.folder)
    assert done.returncode == 2
    assert "--against is for the page" in done.stderr
