"""Which line made each node of a captured graph.

There is no CUDA here: the driver is a stand-in in whose graph every operator that runs makes one node.
The script, its lines and autograd are real. tests/gpu/test_captured_graphs.py asks the real driver.
"""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from warpline.capture.runner.device import cudagraphs
from warpline.capture.runner.device.cudagraphs import CudaGraphs
from warpline.capture.runner.lines.names import QualifiedNames
from warpline.capture.runner.lines.userfiles import UserFiles
from warpline.wire.cudagraphs import KERNEL

SCRIPT = """\
import torch


def forward(x, w):
    h = x @ w
    return h.sigmoid()


def step(graph, x, w):
    graph.capture_begin()
    y = forward(x, w)
    loss = y.sum()
    loss.backward()
    w.grad.zero_()
    graph.capture_end()
    x.add_(1.0)
"""


class Operators(TorchDispatchMode):
    """Counts what runs, and remembers it."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(func.__name__)
        return func(*args, **(kwargs or {}))


class Graph:
    """In the place of torch.cuda.CUDAGraph."""

    def capture_begin(self) -> None: ...

    def capture_end(self) -> None: ...

    def replay(self) -> None: ...


def test_nodes_belong_to_the_lines_that_made_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    operators = Operators()

    class Driver:
        def graph(self, stream: int) -> int:
            self.before = len(operators.names)
            return 1

        def count(self, graph: int) -> int:
            return len(operators.names) - self.before

        def nodes(self, graph: int) -> list[Any]:
            return [(KERNEL, (1, 1, 1), (1, 1, 1), "kernel")] * self.count(graph)

    driver = Driver()
    monkeypatch.setattr(cudagraphs, "Driver", lambda: driver)
    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: type("Stream", (), {"cuda_stream": 7}))
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    names: dict[str, Any] = {}
    exec(compile(SCRIPT, str(path), "exec"), names)

    watched = CudaGraphs(UserFiles((str(tmp_path),), ()), QualifiedNames())
    watched.install(torch)
    graph = Graph()
    try:
        with operators:
            names["step"](graph, torch.ones(4, 4), torch.ones(4, 4, requires_grad=True))
        graph.replay()
        watched.recording = True
        graph.replay()
    finally:
        watched.remove()

    (found,) = watched.graphs
    ran = operators.names[driver.before : driver.before + len(found.nodes)]
    placed = [
        (name.partition(".")[0], found.lines[node.line][1], node.backward)
        for name, node in zip(ran, found.nodes, strict=True)
    ]
    for expected in (
        ("mm", 5, False),
        ("sigmoid", 6, False),
        ("sum", 12, False),
        ("expand", 12, True),
        ("sigmoid_backward", 6, True),
        ("mm", 5, True),
        ("zero_", 14, False),
    ):
        assert expected in placed, textwrap.indent("\n".join(map(str, placed)), "  ")
    assert {function for _, _, function in found.lines} == {"forward", "step"}
    assert "add_" not in [name for name, _, _ in placed]  # after the capture
    (replay,) = watched.replays
    assert replay.graph == 0


def test_a_machine_without_the_driver_captures_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise OSError("libcuda.so.1: cannot open shared object file")

    monkeypatch.setattr(cudagraphs, "Driver", missing)
    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: type("Stream", (), {"cuda_stream": 7}))
    watched = CudaGraphs(UserFiles(("/nowhere",), ()), QualifiedNames())
    watched.install(torch)
    try:
        graph = Graph()
        graph.capture_begin()
        graph.capture_end()
        watched.recording = True
        graph.replay()
    finally:
        watched.remove()
    assert not watched.graphs
    assert [one.graph for one in watched.replays] == [-1]
