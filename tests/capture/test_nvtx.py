"""NVTX ranges as a tool sees them: an injection library stands where nsys would, on any machine."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.capture.launching import PYTHONS, Captured, request, write

SOURCE = Path(__file__).with_name("nvtx_listener.c")
NET = """\
net = torch.nn.Linear(16, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
"""
PACKAGE = f"""\
import torch, nvtx
{NET}
@nvtx.annotate(domain="mine")
def forward():
    with nvtx.annotate("inner", color="blue"):
        return net(torch.randn(4, 16)).sum()
stages = nvtx.get_domain("stages")
back = stages.get_event_attributes(message="back")
while True:
    nvtx.push_range("all", domain="other")
    loss = forward()
    stages.push_range(back)
    loss.backward()
    stages.pop_range()
    nvtx.pop_range(domain="other")
    optimizer.step()
"""
TORCH = f"""\
import torch
{NET}
while True:
    with torch.cuda.nvtx.range("forward pass"):
        loss = net(torch.randn(4, 16)).sum()
    torch.cuda.nvtx.range_push("backward pass")
    loss.backward()
    torch.cuda.nvtx.range_pop()
    optimizer.step()
"""


class Event(NamedTuple):
    what: str  # "push" | "pop" | "start" | "end"
    domain: str  # "" is NVTX's own
    thread: int
    range: int
    message: str


@pytest.fixture(scope="session")
def listener(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.fail("this test needs a C compiler: put gcc on the PATH")
    library = tmp_path_factory.mktemp("nvtx") / "listener.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, SOURCE], check=True, timeout=120)
    return library


def told(script: str, folder: Path, listener: Path, python: str, lines: bool) -> tuple[Captured, list[Event]]:
    """What a tool is told of ``script`` while it is profiled; ``lines``: with ``--nvtx``."""
    asked = request(write(folder, script), python, nvtx=lines)
    log = folder / "told.txt"
    environment = {"NVTX_INJECTION64_PATH": str(listener), "NVTX_LISTENER_LOG": str(log)}
    captured = Captured(replace(asked, environment={**asked.environment, **environment}), folder)
    rows = (line.split("\t") for line in log.read_text().splitlines()) if log.exists() else ()
    return captured, [Event(row[0], row[1], int(row[2]), int(row[3]), row[4]) for row in rows]


def can(python: str, statement: str) -> bool:
    """Whether the interpreter can do what the test is about."""
    done = subprocess.run([python, "-c", statement], capture_output=True, timeout=180)
    return done.returncode == 0


def steps_and_lines(events: list[Event], domain: str) -> Counter[str]:
    """Names of the ranges that ``--nvtx`` writes; each must end once, and lines lie within steps."""
    mine = [event for event in events if event.domain == domain and event.what in ("start", "end")]
    open_ranges: dict[int, str] = {}
    names: Counter[str] = Counter()
    for event in mine:
        if event.what == "start":
            open_ranges[event.range] = event.message
            names[event.message] += 1
        else:
            del open_ranges[event.range]  # once, and only what was begun
    assert not open_ranges
    steps = [event.message for event in mine if event.what == "start" and event.message.startswith("step ")]
    assert steps == ["step 1", "step 2", "step 3"]
    return names


def nested(events: list[Event]) -> Counter[tuple[str, str]]:
    """``(domain, message)`` of pushed ranges, which must nest by thread and domain."""
    stacks: dict[tuple[int, str], list[str]] = {}
    for event in events:
        stack = stacks.setdefault((event.thread, event.domain), [])
        if event.what == "push":
            stack.append(event.message)
        elif event.what == "pop":
            stack.pop()
    # The script is ended in the middle of a step.
    assert all(len(stack) <= 1 for stack in stacks.values())
    return Counter((event.domain, event.message) for event in events if event.what == "push")


@pytest.mark.parametrize("python", PYTHONS)
def test_the_package_s_ranges_and_ours_reach_a_tool(tmp_path: Path, listener: Path, python: str) -> None:
    if not can(python, "import nvtx"):
        pytest.skip("the nvtx package is not installed there")
    captured, events = told(PACKAGE, tmp_path, listener, python, lines=True)
    assert captured.manifest.notes == ()
    names = steps_and_lines(events, "warpline")
    numbers = {text: n for n, text in enumerate(PACKAGE.splitlines(), 1)}
    assert names[f"forward train.py:{numbers['        return net(torch.randn(4, 16)).sum()']}"] >= 3
    assert names[f"<module> train.py:{numbers['    loss.backward()']}"] >= 3
    # What the user marked reaches the tool as often as the steps were made, not once more for us.
    pushed = nested(events)
    made = pushed["other", "all"]
    assert made >= 3
    assert pushed["mine", "forward"] in (made, made - 1)
    assert pushed["", "inner"] in (made, made - 1)
    assert pushed["stages", "back"] in (made, made - 1)


@pytest.mark.parametrize("python", PYTHONS)
def test_torch_s_own_ranges_and_ours_reach_a_tool(tmp_path: Path, listener: Path, python: str) -> None:
    if not can(python, "from torch._C import _nvtx"):
        pytest.skip("that torch is built without NVTX")
    hidden = tmp_path / "without"
    hidden.mkdir()
    write(hidden, "raise ImportError('no such package here')", "nvtx.py")
    script = f"import sys; sys.path.insert(0, {str(hidden)!r})\n" + TORCH
    captured, events = told(script, tmp_path, listener, python, lines=True)
    assert captured.manifest.notes == ()
    names = steps_and_lines(events, "")
    assert any(name.startswith("<module> train.py:") for name in names)
    pushed = nested(events)
    assert pushed["", "forward pass"] >= 3
    assert pushed["", "backward pass"] >= 3
    trace = json.loads((captured.run / "trace.json").read_text())
    marks = Counter(event["name"] for event in trace["traceEvents"] if event.get("cat") == "user_annotation")
    assert marks["nvtx:NVTX:forward pass"] >= 3
    assert marks["nvtx:NVTX:backward pass"] >= 3


def test_without_the_option_only_the_users_ranges_are_written(tmp_path: Path, listener: Path) -> None:
    python = PYTHONS[0]
    if not can(python, "import nvtx"):
        pytest.skip("the nvtx package is not installed there")
    _, events = told(PACKAGE, tmp_path, listener, python, lines=False)
    assert {event.domain for event in events} == {"mine", "other", "stages", ""}
    assert {event.what for event in events} == {"push", "pop"}
