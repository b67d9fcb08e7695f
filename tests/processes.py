"""Which tests start processes, and which of those must have the machine to themselves.

``make check`` leaves out what starts a process. The mark is set here, from what a test names. With
``-m "not process"`` a guard fails a test that starts one all the same. With several workers the tests marked
``alone``, which compare times, run last and one at a time over all workers. A test that fails while
others run beside it runs again alone, with its module's fixtures made anew, and only that try counts.
"""

from __future__ import annotations

import fcntl
import gc
import inspect
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, TextIO

import pytest
import pytest_timeout

ROOT = Path(__file__).resolve().parent.parent


def modules(names: dict[str, str]) -> frozenset[str]:
    """``{"tests/lsp": "moves saved"}`` as paths from the root."""
    return frozenset(f"{folder}/test_{name}.py" for folder, some in names.items() for name in some.split())


#: Modules whose tests start processes through Warpline's own code, which `starts_one` does not look into.
MODULES = modules(
    {
        "tests": "pipeline",
        "tests/agents": "mcp",
        "tests/capture": "nsight nsight_module overlay probing restless wrong_input",
        "tests/commands": "doctor kernel",
        "tests/html": "frames",
        "tests/lines": "lines",
        "tests/lsp/state": "random_edits",
        "tests/measure": "real_processes side_by_side slices",
        "tests/ranks": "ranks",
    }
)

#: Tests that compare times which differ on a busy machine. While one runs, all other workers wait. One that
#: seldom fails beside others does not belong here: it is tried again alone.
ALONE = frozenset(
    {
        "tests/test_pipeline.py::test_the_step_and_a_planted_delay_agree_with_a_stopwatch",
        "tests/capture/test_sampling.py::test_lines_are_counted_as_often_as_they_run",
        "tests/capture/test_worker_lines.py::test_lines_of_workers_take_what_their_own_clock_says",
    }
)

#: What starts a process when a test, a fixture of its or a function of the tests that they call names it.
STARTERS = frozenset(
    {
        "subprocess",
        "tests.conftest.warpline",
        "tests.capture.launching.Captured",
        "tests.lsp.client.Client",
        "warpline.capture.runner.sampler.child",
        "warpline.capture.runner.sampler.frames.Frames",
        "warpline.capture.runner.sampler.pyspy.PySpy",
        "warpline.capture.runner.workers.sampled.Sampled",
        "playwright.sync_api.sync_playwright",
    }
)

#: What Python says of itself when it starts a process (https://docs.python.org/3/library/audit_events.html).
EVENTS = frozenset(
    {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system", "os.exec"}
)


def shared_folder(config: pytest.Config) -> Path:
    """The folder for temporary files of this run of pytest, the same for all its workers."""
    folder: Path = config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
    return folder.parent if hasattr(config, "workerinput") else folder


def module(item: pytest.Item) -> str:
    return item.path.relative_to(ROOT).as_posix()


def on_gpu(item: pytest.Item) -> bool:
    """It has a turn on a GPU of its own (tests/gpu/sharing.py), and is not tried again."""
    return module(item).startswith("tests/gpu/")


#: What a worker's environment has otherwise than the one that pytest was started in.
CHANGED = ("PYTHONPATH", "COLUMNS", "LINES")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """In the process that starts the workers, for each of them."""
    node.workerinput["environment"] = {name: os.environ.get(name) for name in CHANGED}


def pytest_configure(config: pytest.Config) -> None:
    # A job in a shell's background ignores Ctrl-C, and so does all that it starts. Every script that is ended
    # by Ctrl-C would be waited for in vain.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for name, value in getattr(config, "workerinput", {}).get("environment", {}).items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value
    config.pluginmanager.register(Processes(config))


def starts_one(item: pytest.Item) -> bool:
    """Whether a test, its fixtures or the functions of the tests that they call name one of ``STARTERS``."""
    fixtures = getattr(item, "_fixtureinfo", None)
    functions = (
        [each.func for some in fixtures.name2fixturedefs.values() for each in some] if fixtures else []
    )
    return any(map(reaches, [getattr(item, "function", None), *functions]))


@cache
def reaches(function: object) -> bool:
    seen: set[object] = set()
    left = [inspect.unwrap(function)] if callable(function) else []
    while left:
        one = left.pop()
        code = getattr(one, "__code__", None)
        if code is None or code in seen:
            continue
        seen.add(code)
        for name in names_in(code):
            value = one.__globals__.get(name)
            if full_name(value) in STARTERS:
                return True
            if str(getattr(value, "__module__", "")).startswith("tests."):
                left += [value, *vars(value).values()] if isinstance(value, type) else [value]
    return False


def names_in(code: CodeType) -> set[str]:
    inner = (names_in(each) for each in code.co_consts if isinstance(each, CodeType))
    return set(code.co_names).union(*inner)


def full_name(value: object) -> str:
    if isinstance(value, ModuleType):
        return value.__name__
    return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', '')}"


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses by the marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if module(item) in MODULES or starts_one(item):
            item.add_marker(pytest.mark.process)
        if f"{module(item)}::{getattr(item, 'originalname', item.name)}" in ALONE:
            item.add_marker(pytest.mark.alone)
        elif hasattr(config, "workerinput") and item.get_closest_marker("process") and not on_gpu(item):
            item.add_marker(pytest.mark.flaky(reruns=1))

    # Long ones first, so that no worker is left with one at the end; those that run alone last.
    def order(item: pytest.Item) -> int:
        if item.get_closest_marker("alone"):
            return 3
        if "editors" in getattr(item, "fixturenames", ()):
            return 0
        return 1 if item.get_closest_marker("process") else 2

    if hasattr(config, "workerinput"):
        items.sort(key=order)


def pytest_collection_finish() -> None:
    """What the collection made lives until the end: the garbage collector leaves it out, and runs less often.
    Without this, tests take an eighth more processor time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


def finish_shared(item: pytest.Item) -> None:
    """Ends the fixtures that a test shares with its module: one of them, such as a profile taken while the
    machine was busy, may be why the test failed. The next setup makes them anew."""
    info, request = getattr(item, "_fixtureinfo", None), getattr(item, "_request", None)
    for definitions in info.name2fixturedefs.values() if info else ():
        for one in definitions:
            if one.scope in ("module", "class"):
                one.finish(request)


class Processes:
    """Fails a test that starts a process without the mark, and holds back the others while one runs alone."""

    def __init__(self, config: pytest.Config) -> None:
        self._unmarked = ""  # the test that runs, if it may start no process
        self._started: list[str] = []
        self._file: TextIO | None = None  # locked while a test runs, shared or not
        self._several = hasattr(config, "workerinput")  # this is one of several workers
        self._guarded = "not process" in config.option.markexpr
        if self._guarded:
            sys.addaudithook(self._audit)

    @pytest.hookimpl(
        wrapper=True, tryfirst=True
    )  # around pytest-timeout: waiting for a turn is not the test's time
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        with self._turn(item):
            self._started.clear()
            self._unmarked = item.nodeid if self._guarded else ""
            try:
                return (yield)
            finally:
                self._unmarked = ""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, call: pytest.CallInfo[None]) -> Iterator[None]:
        report = yield
        if (
            self._started and call.when == "teardown" and report.passed
        ):  # where a thread or an `except` took the failure
            report.outcome = "failed"
            report.longrepr = self._started[0]
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """A second try is made alone, with fresh module fixtures and its time limit begun anew."""
        if self._file and getattr(item, "execution_count", 1) > 1:
            item.ihook.pytest_timeout_cancel_timer(item=item)
            fcntl.flock(self._file, fcntl.LOCK_EX)
            finish_shared(item)
            limits = pytest_timeout._get_item_settings(item)
            item.ihook.pytest_timeout_set_timer(item=item, settings=limits)

    @contextmanager
    def _turn(self, item: pytest.Item) -> Iterator[None]:
        """Waits while another worker runs a test alone, or for all others if this one does."""
        if not self._several:
            yield
            return
        with (shared_folder(item.config) / "turn.lock").open("w") as self._file:
            fcntl.flock(self._file, fcntl.LOCK_EX if item.get_closest_marker("alone") else fcntl.LOCK_SH)
            yield

    def _audit(self, event: str, arguments: object) -> None:
        if event in EVENTS and self._unmarked:
            said = f"{self._unmarked} starts a process: mark it `process`"
            self._started.append(said)
            pytest.fail(said)
