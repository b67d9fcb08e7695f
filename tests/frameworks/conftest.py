"""Tests with the real frameworks: left out, with one line, where these are not installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.frameworks.installed import OPTIONAL, missing, words

HERE = Path(__file__).parent
_LACKING = pytest.StashKey[list[str]]()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    mine = [item for item in items if HERE in item.path.parents]
    for item in mine:
        item.add_marker(pytest.mark.framework)
        item.add_marker(pytest.mark.process)
        item.add_marker(pytest.mark.timeout(600))
    lacking = missing() if mine else []
    # timm needs a torchvision that fits torch: `make frameworks` cannot promise it.
    out = [item for item in mine if any(name not in OPTIONAL or name in item.name for name in lacking)]
    if out:
        config.stash[_LACKING] = lacking
        config.hook.pytest_deselected(items=out)
        items[:] = [item for item in items if item not in out]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    lacking = config.stash.get(_LACKING, None)
    if lacking:
        terminalreporter.write_line(words(lacking))
