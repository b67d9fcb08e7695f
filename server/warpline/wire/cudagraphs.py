"""CUDA graphs: what a capture put into a graph, line by line, and which graph was replayed when.

A trace has neither. It says of a replay how many kernels ran and how they were launched, and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass

#: What a node does on the device. Other nodes (events, host functions, empty ones) leave nothing in a trace.
KERNEL, COPY, SET = 0, 1, 2


@dataclass(frozen=True)
class Node:
    """A node of a graph that works on the device."""

    kind: int  # KERNEL, COPY or SET
    line: int  # index into CapturedGraph.lines, -1: captured outside the user's files
    backward: bool  # made by an autograd node; ``line`` is then the line of its forward
    grid: tuple[int, int, int] = (0, 0, 0)  # of kernels
    block: tuple[int, int, int] = (0, 0, 0)
    name: str = ""  # of kernels, as a trace has it; "" where the driver does not say


@dataclass(frozen=True)
class CapturedGraph:
    """The nodes of one graph in the order in which they were captured."""

    lines: tuple[tuple[str, int, str], ...]  # (file, line, function)
    nodes: tuple[Node, ...]


@dataclass(frozen=True)
class Replay:
    """A call of ``CUDAGraph.replay`` while the profiler ran."""

    time_ns: int
    thread: int  # native id
    graph: int  # index into Facts.captured_graphs, -1: captured before the runner could see it
