"""What needs a CUDA device: run by ``make gpu-test``, left out of ``make test``.

Not run yet: there was no GPU where this was written. The first run on one will find mistakes here.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import warpline

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.gpu)
            item.add_marker(pytest.mark.timeout(900))


@pytest.fixture(scope="session", autouse=True)
def device() -> str:
    """The device's name. Fails where there is none: these tests are asked for by name."""
    import torch

    if not torch.cuda.is_available():
        pytest.fail("make gpu-test needs a CUDA device")
    return torch.cuda.get_device_name()


@pytest.fixture(scope="session")
def profiled(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], dict[str, Any]]:
    """The JSON report of a script, each profiled once for the session."""
    known: dict[Path, dict[str, Any]] = {}

    def profile(script: Path) -> dict[str, Any]:
        if script not in known:
            folder = tmp_path_factory.mktemp(script.parent.name)
            done = warpline("profile", "--run-dir", folder, "--json", "-", script, cwd=folder)
            assert done.returncode == 0, done.stderr
            known[script] = json.loads(done.stdout)
        return known[script]

    return profile
