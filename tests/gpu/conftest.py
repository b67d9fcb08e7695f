"""What needs a CUDA device: run by ``make gpu-test``, left out of ``make test``."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.captures import record
from tests.gpu import sharing
from tests.gpu.claims import JUDGED
from tests.processes import shared_folder

HERE = Path(__file__).parent


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.gpu)
            item.add_marker(pytest.mark.timeout(900))
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: sharing.order(item.nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    return sharing.workers(len(sharing.names()), len(os.sched_getaffinity(0)))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """In the process that starts the workers, for each of them."""
    node.workerinput["gpus"] = sharing.names()


def pytest_sessionstart(session: pytest.Session) -> None:
    started: dict[str, Any] = getattr(session.config, "workerinput", {})
    if gpus := started.get("gpus"):
        number = int(started["workerid"].removeprefix("gw"))
        turns = sharing.Turns(shared_folder(session.config), gpus, number)
        session.config.pluginmanager.register(sharing.Sharing(turns))


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

    Packed as a recording too when the environment's WARPLINE_RECORDINGS names a folder. Replacements are
    tried for that, and where a test is about findings: they take half of a profile's time.
    """
    known: dict[str, Path | None] = {}
    out = Path(os.environ["WARPLINE_RECORDINGS"]) if "WARPLINE_RECORDINGS" in os.environ else None

    def run(name: str) -> Path:
        if name not in known:
            known[name] = record.profiled(
                name, tmp_path_factory.mktemp(name), out, trials=out is not None or name in JUDGED
            )
        found = known[name]
        assert found is not None, f"{name} made no run"
        return found

    return run
