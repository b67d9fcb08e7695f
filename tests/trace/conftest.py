"""Tests with public sample traces: left out, with one line, where these were not fetched."""

from __future__ import annotations

import pytest

from tests.trace.samples import MISSING, missing

_LEFT_OUT = pytest.StashKey[bool]()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    out = [item for item in items if item.path.name == "test_samples.py"] if missing() else []
    if out:
        config.stash[_LEFT_OUT] = True
        config.hook.pytest_deselected(items=out)
        items[:] = [item for item in items if item not in out]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if config.stash.get(_LEFT_OUT, False):
        terminalreporter.write_line(MISSING)
