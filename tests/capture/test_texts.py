"""Files that are saved while the script runs: numbers stay on the lines that ran."""

from __future__ import annotations

import py_compile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.capture.launching import PYTHONS, Captured, request, write
from warpline import pipeline, runs
from warpline.capture.runner.texts import Texts, decoded, made_from
from warpline.wire.run import Request

#: Saves every file of its folder with other lines on top, once it runs, and then goes on.
SAVES = """\
import pathlib, time, torch
{imports}

def saved():
    for path in pathlib.Path(__file__).parent.glob("**/*.py"):
        path.write_bytes(b"# new\\n" * 7 + path.read_bytes().replace(b"HOT", b"COLD"))

model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
saved()
for step in range(3000):
    x = work(torch.randn(4, 8))
    time.sleep(0.01)  # HOT
    model(x).sum().backward()
    optimizer.step()
"""
WORK = """\
import time

def work(x):
    time.sleep(0.01)  # HOT
    return x
"""


def hot(asked: Request, folder: Path) -> dict[str, list[str]]:
    """File name -> what the recorded text says on the lines that took a quarter of the step or more."""
    captured = Captured(asked, folder)
    assert "Error" not in captured.output
    report, sources = pipeline.report_of(captured.run), runs.sources(captured.run)
    found: dict[str, list[str]] = {}
    for line in report.lines:
        if line.step_ms >= 0.25 * report.steps.step_ms:
            text = sources[line.file].split("\n")[line.line - 1] if line.file in sources else ""
            found.setdefault(Path(line.file).name, []).append(text.strip())
    return found


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("cached", [False, True], ids=["compiled", "cached"])
def test_a_script_and_a_module_that_are_saved(python: str, cached: bool, tmp_path: Path) -> None:
    script = write(tmp_path, SAVES.format(imports="from layers import work"))
    module = write(tmp_path, WORK, "layers.py")
    if cached:
        py_compile.compile(str(module))
    said = hot(request(script, python), tmp_path)
    assert said == {"train.py": ["time.sleep(0.01)  # HOT"], "layers.py": ["time.sleep(0.01)  # HOT"]}


def test_a_module_run_by_name_and_one_run_by_its_path(tmp_path: Path) -> None:
    package = tmp_path / "project"
    package.mkdir()
    write(package, "", "__init__.py")
    write(package, SAVES.format(imports="import runpy; work = runpy.run_path('layers.py')['work']"))
    write(tmp_path, WORK, "layers.py")
    asked = replace(request(tmp_path / "x"), target="project.train", module=True, cwd=str(tmp_path))
    said = hot(asked, tmp_path)
    assert said["train.py"] == ["time.sleep(0.01)  # HOT"]


def test_a_file_that_the_script_reads_itself_is_not_shown_as_what_it_became(tmp_path: Path) -> None:
    """Nobody saw it compiled, and it does not give the code that ran any more: its text is not known."""
    imports = "exec(compile(open('layers.py').read(), 'layers.py', 'exec'))"
    script = write(tmp_path, SAVES.format(imports=imports))
    write(tmp_path, WORK, "layers.py")
    assert hot(request(script), tmp_path) == {"train.py": ["time.sleep(0.01)  # HOT"], "layers.py": [""]}


def test_a_file_that_the_script_reads_itself_and_nobody_saves(tmp_path: Path) -> None:
    imports = "exec(compile(open('layers.py').read(), 'layers.py', 'exec'))"
    script = write(tmp_path, SAVES.format(imports=imports).replace("**/*.py", "none"))
    write(tmp_path, WORK, "layers.py")
    assert hot(request(script), tmp_path)["layers.py"] == ["time.sleep(0.01)  # HOT"]


@pytest.fixture
def texts() -> Iterator[Texts]:
    made = Texts()
    yield made
    made.stop()


def load(path: Path) -> None:
    """As ``import`` does it."""
    from importlib.machinery import SourceFileLoader
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location(path.stem, path, loader=SourceFileLoader(path.stem, str(path)))
    assert spec is not None and spec.loader is not None
    spec.loader.exec_module(module_from_spec(spec))


def test_reading_a_source_for_a_traceback_is_not_running_it(texts: Texts, tmp_path: Path) -> None:
    import linecache

    path = write(tmp_path, "a = 1\n", "one.py")
    load(path)
    path.write_text("b = 2\nc = 3\n")
    from importlib.machinery import SourceFileLoader

    assert SourceFileLoader("one", str(path)).get_source("one") == "b = 2\nc = 3\n"
    assert linecache.getlines(str(path)) == ["b = 2\n", "c = 3\n"]
    assert texts.text(str(path)) == "a = 1\n"
    path.write_text("print(end='')\n")
    load(path)  # a reload: what runs from now on
    assert texts.text(str(path)) == "print(end='')\n"


@pytest.mark.parametrize(
    "mode", [py_compile.PycInvalidationMode.TIMESTAMP, py_compile.PycInvalidationMode.CHECKED_HASH]
)
def test_cached_bytecode_is_of_the_source_or_not(
    mode: py_compile.PycInvalidationMode, texts: Texts, tmp_path: Path
) -> None:
    path = write(tmp_path, "a = 1\n", "one.py")
    cached = py_compile.compile(str(path), invalidation_mode=mode)
    assert cached is not None
    load(path)
    assert texts.text(str(path)) == "a = 1\n"
    header = Path(cached).read_bytes()[:16]
    assert not made_from(header, b"a = 21\n", path.stat().st_mtime)


def test_bytecode_that_is_not_checked_against_its_source(texts: Texts, tmp_path: Path) -> None:
    path = write(tmp_path, "a = 1\n", "one.py")
    py_compile.compile(str(path), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    path.write_text("a = 2\n")
    load(path)
    assert texts.text(str(path)) is None
    assert texts.of([str(path)], []) == {}


def test_installed_packages_are_left_out(texts: Texts, tmp_path: Path) -> None:
    folder = tmp_path / "site-packages"
    folder.mkdir()
    path = write(folder, "a = 1\n", "one.py")
    load(path)
    assert texts.text(str(path)) is None
    kept = Texts([str(folder)])
    load(path)
    kept.stop()
    assert kept.text(str(path)) == "a = 1\n"


def test_the_import_system_is_left_as_it_was() -> None:
    import io
    from importlib.machinery import SourceFileLoader

    before = SourceFileLoader.get_data, io.open_code
    made = Texts()
    assert (SourceFileLoader.get_data, io.open_code) != before
    made.stop()
    assert (SourceFileLoader.get_data, io.open_code) == before


def test_text_is_what_python_reads() -> None:
    assert decoded("# coding: latin-1\nx = 'é'\r\n".encode("latin-1")) == "# coding: latin-1\nx = 'é'\n"
    assert decoded(b"\xef\xbb\xbfx = 1\n") == "x = 1\n"
    assert decoded(b"x = '\xff'\n") == "x = '\ufffd'\n"


def test_code_of_another_text_is_told_apart(tmp_path: Path) -> None:
    path = write(tmp_path, "def f():\n    return 1\n", "one.py")
    made = Texts()
    made.stop()
    made._begun = 0.0  # the file was saved since
    ran = [
        code for code in compile(path.read_text(), str(path), "exec").co_consts if hasattr(code, "co_code")
    ]
    assert made.of([str(path)], ran) == {str(path): path.read_text()}
    for other in ("\ndef f():\n    return 1\n", "def f():\n    return 2\n", "def f(:\n"):
        path.write_text(other)
        assert made.of([str(path)], ran) == {}


def test_small_files_beside_the_script_are_kept_too(texts: Texts, tmp_path: Path) -> None:
    """Its settings, say, of which no line takes any time."""
    folder = tmp_path / "project"
    folder.mkdir()
    small = write(folder, "rate = 0.1\n", "settings.py")
    large = write(folder, f"table = '{'a' * 300_000}'\n", "table.py")
    far = write(tmp_path, "b = 1\n", "other.py")
    for path in (large, small, far):
        load(path)
    assert texts.beside(str(folder)) == [str(small)]
