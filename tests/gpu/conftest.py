"""What needs a CUDA device: run by ``make gpu-test``, left out of ``make test``."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.captures import record

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


@pytest.fixture(scope="session", autouse=True)
def lean_torch() -> None:
    """Not here: scripts load torch as a user's do."""


@pytest.fixture(scope="session")
def run_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """``run_of(name)``: the run folder of a script, each profiled once for the session.

    Packed as a recording too when the environment's WARPLINE_RECORDINGS names a folder.
    """
    known: dict[str, Path | None] = {}
    out = Path(os.environ["WARPLINE_RECORDINGS"]) if "WARPLINE_RECORDINGS" in os.environ else None

    def run(name: str) -> Path:
        if name not in known:
            known[name] = record.profiled(name, tmp_path_factory.mktemp(name), out)
        found = known[name]
        assert found is not None, f"{name} made no run"
        return found

    return run
