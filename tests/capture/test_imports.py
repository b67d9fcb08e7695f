"""Waiting for a module among finders of the script's own."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

import pytest

from warpline.capture.runner import imports

NAME = "waited_for"


@pytest.fixture(autouse=True)
def importable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / f"{NAME}.py").write_text("value = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield
    imports.stop_waiting()
    sys.modules.pop(NAME, None)


class Eager:
    """Imports what it is asked for while it looks for it, as some lazy loaders do."""

    def __init__(self) -> None:
        self.asked = 0

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name != NAME:
            return None
        self.asked += 1
        if self.asked == 1:
            importlib.import_module(name)
        return PathFinder.find_spec(name)


def test_it_is_told_once_when_the_module_is_there() -> None:
    told: list[int] = []
    imports.when_imported(NAME, lambda module: told.append(module.value))
    assert told == []
    importlib.import_module(NAME)
    assert told == [1]
    imports.when_imported(NAME, lambda module: told.append(module.value + 1))
    assert told == [1, 2]


def test_a_finder_that_imports_what_it_looks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[ModuleType] = []
    monkeypatch.setattr(sys, "meta_path", [Eager(), *sys.meta_path])
    imports.when_imported(NAME, told.append)
    module = importlib.import_module(NAME)
    assert module.value == 1
    assert len(told) == 1


def test_asking_whether_a_module_is_there_is_no_import() -> None:
    """Hugging Face's packages ask for torch before anything imports it."""
    told: list[ModuleType] = []
    imports.when_imported(NAME, told.append)
    for _ in range(2):
        spec = importlib.util.find_spec(NAME)
        assert spec is not None and spec.loader is not None
        assert "value = 1" in str(spec.loader.get_source(NAME))  # type: ignore[attr-defined]
    assert told == []
    module = importlib.import_module(NAME)
    assert told == [module]
    assert not isinstance(module.__loader__, imports._Loader)


def test_a_module_whose_code_still_runs_is_waited_for(tmp_path: Path) -> None:
    """As ``accelerate.accelerator``, which is the first to import torch in many scripts."""
    told: list[int] = []
    inner = "asks_within_the_import"
    (tmp_path / f"{NAME}.py").write_text(f"import {inner}\nvalue = 1\n")
    (tmp_path / f"{inner}.py").write_text("")
    imports.when_imported(inner, lambda _: imports.when_imported(NAME, lambda one: told.append(one.value)))
    module = importlib.import_module(NAME)
    assert told == [1]
    assert type(module.__spec__) is ModuleSpec
    imports.when_imported(NAME, lambda one: told.append(one.value + 1))
    assert told == [1, 2]
