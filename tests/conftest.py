"""What every test may use: the commands as a user runs them, and one recorded run that all share."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.distribution import pytest_xdist_make_scheduler  # noqa: F401  # pytest finds its hooks here
from tests.processes import (
    ROOT,
    pytest_collection_finish,  # noqa: F401
    pytest_collection_modifyitems,  # noqa: F401
    pytest_configure,  # noqa: F401
    pytest_configure_node,  # noqa: F401
    shared_folder,
)
from warpline.model.report import Report

# Asserts that stand in no test module say what they compared, too.
pytest.register_assert_rewrite("tests.gpu.claims", "tests.gpu.apart")

#: Generous: CI has two slow cores that others use as well.
LIMIT_S = 180
#: With this folder on PYTHONPATH, scripts start in half the time.
LEAN = str(ROOT / "tests/lean")
#: Lines are sampled for a fraction of the two seconds that they are usually, at a higher rate.
SAMPLED = "_warpline.wire.samples.LEAST_NS=3e8"


@pytest.fixture(scope="session", autouse=True)
def lean_torch() -> Iterator[None]:
    """Scripts that tests start load torch without its compiler, until they ask for it (tests/lean)."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([LEAN, *_python_path()]))
        patch.setenv("LEAN", SAMPLED)
        yield


@pytest.fixture(scope="module")
def whole_torch() -> Iterator[None]:
    """For a module whose scripts load torch as a user's do: ``usefixtures("whole_torch")``."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(_python_path()))
        yield


def _python_path() -> list[str]:
    """What PYTHONPATH names, without ``LEAN``."""
    return [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path not in ("", LEAN)]


def shortened(**constants: float) -> dict[str, str]:
    """An environment that gives constants of the runner other values: ``endings__IDLE_S=1`` (tests/lean)."""
    named = {name.replace("__", "."): value for name, value in constants.items()}
    for name in named:  # one of a module that is nowhere would shorten nothing
        module = ROOT.joinpath("server/warpline/capture/runner", *name.split(".")[:-1])
        assert module.with_suffix(".py").exists(), name
    words = [f"_warpline.capture.runner.{name}={value}" for name, value in named.items()]
    return {"OMP_NUM_THREADS": "1", "LEAN": " ".join([SAMPLED, *words])}


def environment(**more: str) -> dict[str, str]:
    """This process's, with our sources importable and torch kept to one thread."""
    path = os.pathsep.join(filter(None, (str(ROOT / "server"), os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", **more}


def warpline(*words: str | Path, cwd: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """``warpline WORDS…`` as a user runs it, in ``cwd``; output captured as text."""
    return subprocess.run(
        [sys.executable, "-m", "warpline", *map(str, words)],
        cwd=cwd,
        env=environment(**more),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )


@dataclass(frozen=True)
class ExampleRun:
    """``examples/quickstart/slow.py`` in a folder of its own, profiled once for all tests, on all workers.

    Read only: a test that changes the run or the folder works on a copy.
    """

    folder: Path  # the working folder, ``.warpline/runs`` lies in it
    script: Path
    run: Path
    report: Report
    stdout: str  # what `warpline profile` printed
    stderr: str


@pytest.fixture(scope="session")
def example_run(request: pytest.FixtureRequest) -> ExampleRun:
    from warpline import pipeline  # pandas and numpy, for those alone who need them

    folder = shared_folder(request.config) / "example"
    script, said = folder / "slow.py", folder / "said.json"
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not said.exists():
            folder.mkdir(exist_ok=True)
            script.write_bytes((ROOT / "examples/quickstart/slow.py").read_bytes())
            path = os.pathsep.join([str(ROOT / "server"), *_python_path()])
            done = warpline("profile", script.name, cwd=folder, PYTHONPATH=path)
            assert done.returncode == 0, done.stderr
            (run,) = (path.parent for path in (folder / ".warpline/runs").glob("*/manifest.json"))
            said.write_text(json.dumps([str(run), done.stdout, done.stderr]))
    name, stdout, stderr = json.loads(said.read_text())
    return ExampleRun(folder, script, Path(name), pipeline.report_of(Path(name)), stdout, stderr)


CAPTURES = ROOT / "tests/captures"


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """``recorded(name)``: the folder of a run that was recorded on a GPU (tests/captures/record.py).

    Unpacked once for the session, and read only like ``example_run``; a report is made by whoever asks.
    """
    known: dict[str, Path] = {}

    def unpacked(name: str) -> Path:
        if name not in known:
            known[name] = tmp_path_factory.mktemp(f"recorded-{name}", numbered=False)
            with tarfile.open(CAPTURES / f"{name}.tar.xz") as packed:
                packed.extractall(known[name], filter="data")
        return known[name]

    return unpacked


@pytest.fixture
def free_port() -> int:
    import socket

    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port
