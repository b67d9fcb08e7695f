"""CUDA graphs: which line made each node of a capture, and which graph is replayed when.

While a graph is captured nothing runs, but the driver says how many nodes the graph has. Asked whenever the
script comes to another line, it tells which nodes a line made. Backward runs in one call, on autograd's own
thread: there the driver is asked before each autograd node, whose sequence number leads to its forward line.
"""

from __future__ import annotations

import sys
import threading
from bisect import bisect_right
from dataclasses import asdict
from time import time_ns
from types import FrameType
from typing import Any, Callable, Optional

from ....wire.cudagraphs import CapturedGraph, Node, Replay
from ..lines.names import QualifiedNames
from ..lines.userfiles import UserFiles
from ..patches import Patches
from .driver import Driver

#: (file, line, function, whether backward); None: no line of the user's.
Owner = Optional["tuple[str, int, str, bool]"]
#: Autograd's nodes of one backward that are looked at.
MOST_NODES = 200_000
#: What accumulates gradients has no number of its own (autograd gives it the largest there is).
NUMBERED = 1 << 62


class Forwards:
    """The lines of one thread's forward operators, by the autograd number from which each of them holds."""

    def __init__(self) -> None:
        self.begin: list[int] = []
        self.owner: list[Owner] = []

    def note(self, number: int, owner: Owner) -> None:
        """From this autograd number on, forward operators belong to ``owner``."""
        if not self.owner or self.owner[-1] != owner:
            self.begin.append(number)
            self.owner.append(owner)

    def line_of(self, number: int) -> Owner:
        """The line whose forward operator has this autograd number, or None."""
        at = bisect_right(self.begin, number) - 1
        return self.owner[at] if at >= 0 else None


class Capture:
    """One graph while it is captured. ``at(owner)``: what is made from now on is the owner's."""

    def __init__(self, driver: Driver, graph: int, owner: Owner) -> None:
        self.driver = driver
        self.graph = graph
        self.owner = owner
        self.owners: list[Owner] = []  # of the nodes made so far
        self.lock = threading.Lock()  # lines run on one thread, autograd's nodes on another

    def at(self, owner: Owner) -> None:
        """The nodes made since the last call belong to the line before; those that follow to ``owner``."""
        with self.lock:
            made = self.driver.count(self.graph) - len(self.owners)
            self.owners += [self.owner] * made
            self.owner = owner

    def finished(self) -> CapturedGraph:
        """The graph's nodes with the line that made each."""
        self.at(None)
        lines: dict[tuple[str, int, str], int] = {}
        nodes = []
        for (kind, grid, block, name), owner in zip(self.driver.nodes(self.graph), self.owners):
            if kind is not None:
                line = lines.setdefault(owner[:3], len(lines)) if owner is not None else -1
                backward = owner is not None and owner[3]
                nodes.append(Node(kind, line, backward, grid, block, name))
        return CapturedGraph(tuple(lines), tuple(nodes))


class CudaGraphs:
    """Watches every capture from the import of torch on; replays only while ``recording``."""

    def __init__(self, user_files: UserFiles, names: QualifiedNames) -> None:
        self.user_files = user_files
        self.names = names
        self.patches = Patches()
        self.graphs: list[CapturedGraph] = []
        self.numbers: dict[int, int] = {}  # id of a torch.cuda.CUDAGraph -> index into graphs
        self.replays: list[Replay] = []
        self.recording = False
        self.capture: Capture | None = None
        self.forwards: dict[int, Forwards] = {}  # by thread
        self.torch: Any = None

    def install(self, torch: Any) -> None:
        """Watch captures and replays of CUDA graphs, and the backward pass inside a capture."""
        self.torch = torch
        graph = torch.cuda.CUDAGraph
        self.patches.replace(graph, "capture_begin", self._beginning)
        self.patches.replace(graph, "capture_end", self._ending)
        self.patches.replace(graph, "replay", self._replaying)
        self.patches.replace(torch.autograd, "_engine_run_backward", self._backward)

    def remove(self) -> None:
        """Put torch's own back."""
        self.patches.restore()

    def facts(self) -> dict[str, Any]:
        """The captured graphs, and when each was replayed."""
        return {
            "captured_graphs": [asdict(graph) for graph in self.graphs],
            "replays": [asdict(replay) for replay in self.replays],
        }

    def _beginning(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def capture_begin(graph: Any, *arguments: Any, **named: Any) -> Any:
            result = original(graph, *arguments, **named)
            self.numbers.pop(id(graph), None)
            try:
                self._begin(sys._getframe(1))
            except Exception:  # no driver that can be asked: the graph stays unknown
                self.capture = None
            return result

        return capture_begin

    def _ending(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def capture_end(graph: Any) -> Any:
            capture, self.capture = self.capture, None
            try:
                if capture is not None:
                    self._stop_lines()
                    self.graphs.append(capture.finished())
                    self.numbers[id(graph)] = len(self.graphs) - 1
            except Exception:  # as above
                pass
            return original(graph)

        return capture_end

    def _replaying(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def replay(graph: Any) -> Any:
            if self.recording:
                number = self.numbers.get(id(graph), -1)
                self.replays.append(Replay(time_ns(), threading.get_native_id(), number))
            return original(graph)

        return replay

    def _begin(self, frame: FrameType) -> None:
        stream = self.torch.cuda.current_stream().cuda_stream
        driver = Driver()
        graph = driver.graph(stream)
        if graph is None:
            return
        here = self.user_files.nearest(frame)
        self.capture = Capture(driver, graph, self._owner(here))
        self.known = self.forwards.setdefault(threading.get_ident(), Forwards())
        self._note(self.capture.owner)
        self.theirs = sys.gettrace()
        if self.theirs is not None:
            return  # a debugger's: lines of backward are found all the same
        outer: FrameType | None = frame
        while outer is not None:
            if self.user_files[outer.f_code.co_filename] is not None and outer.f_trace is None:
                outer.f_trace = self._line
            outer = outer.f_back
        sys.settrace(self._call)

    def _stop_lines(self) -> None:
        self.known.note(self.torch.autograd._get_sequence_nr(), None)
        if self.theirs is None:
            sys.settrace(None)
            frame: FrameType | None = sys._getframe(1)
            while frame is not None:
                if frame.f_trace == self._line:
                    frame.f_trace = None
                frame = frame.f_back

    def _call(self, frame: FrameType, event: str, argument: Any) -> Any:
        return self._line if self.user_files[frame.f_code.co_filename] is not None else None

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        capture = self.capture
        if capture is None:
            return None
        if event in ("line", "return"):
            at = frame if event == "line" else self.user_files.nearest(frame.f_back)
            owner = self._owner(at)
            capture.at(owner)
            self._note(owner)
        return self._line

    def _note(self, owner: Owner) -> None:
        self.known.note(self.torch.autograd._get_sequence_nr(), owner)

    def _owner(self, frame: FrameType | None) -> Owner:
        if frame is None:
            return None
        path = self.user_files[frame.f_code.co_filename] or ""
        return path, frame.f_lineno, self.names.of(frame.f_code, path), False

    def _backward(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def run_backward(outputs: Any, *arguments: Any, **named: Any) -> Any:
            capture = self.capture
            if capture is None:
                return original(outputs, *arguments, **named)
            called_at = capture.owner
            hooks = [node.register_prehook(self._before(node, called_at)) for node in nodes_of(outputs)]
            try:
                return original(outputs, *arguments, **named)
            finally:
                capture.at(called_at)
                for hook in hooks:
                    hook.remove()

        return run_backward

    def _before(self, node: Any, called_at: Owner) -> Callable[[Any], None]:
        number, known = node._sequence_nr(), self.known

        def before(gradients: Any) -> None:
            capture = self.capture
            if capture is None:
                return
            if number >= NUMBERED:
                return  # what it makes belongs to the node that made its gradient
            forward = known.line_of(number)
            capture.at((*forward[:3], True) if forward is not None else called_at)

        return before


def nodes_of(outputs: Any) -> list[Any]:
    """The autograd nodes that a backward from ``outputs`` can reach."""
    left = [getattr(one, "grad_fn", None) or getattr(one, "node", None) for one in outputs]
    found: dict[Any, None] = {}
    while left and len(found) < MOST_NODES:
        node = left.pop()
        if node is not None and node not in found:
            found[node] = None
            left += [following for following, _ in node.next_functions]
    return list(found)
