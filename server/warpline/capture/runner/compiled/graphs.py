"""Records of Dynamo and Inductor: graph breaks, recompilations, and the lines of each kernel."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable
from time import perf_counter_ns
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

from ..imports import when_imported
from ..patches import Patches
from ..texts import codes_in
from ..tracebacks import is_ours

if TYPE_CHECKING:
    from ..lines.userfiles import Location, UserFiles
    from ..patches import Function

_RESUMED = re.compile(r"torch_dynamo_resume_in_(.+)_at_\d+")
_FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')
#: A call in the code that Inductor wrote: announced with its number, or launched without (torch numbers
#: neither the two kernels in one of a mixed-order reduction nor what a later pass puts in).
_CALL = re.compile(r"\[Provenance debug handles\] (\S+):(\d+)|^[ \t]+(\w+)\.run\(.*\bstream=", re.MULTILINE)
#: A parameter in the signature of a Triton kernel that points to floats.
_POINTER = re.compile(r"'\*(fp64|fp32|fp16|bf16)'")


class Compiled:
    """Listens once the script has imported torch's compiler. ``compilations``: number of compiled frames."""

    def __init__(self, user_files: UserFiles) -> None:
        self.user_files = user_files
        self.patches = Patches()
        self.events: dict[tuple[str, str, int, str], int] = {}  # (kind, file, line, reason) -> count
        self.kernels: list[dict[str, Any]] = []  # facts of each call of each graph, in the order of the calls
        self.graphs = 0
        self.compilations = 0
        self.took_ns: dict[tuple[str, str, int, str], int] = {}  # ns spent per recompilation event
        self._recompiled: tuple[str, str, int, str] | None = None  # what is being compiled again
        self.tell: Callable[[bool], None] = lambda begun: None  # called as a compilation begins and ends
        self.provenance: bool | None = None  # True or False once Inductor has been imported

    def install(self) -> None:
        """Watch Dynamo and Inductor, each when it is imported."""
        when_imported("torch._dynamo.symbolic_convert", self._watch_breaks)
        when_imported("torch._dynamo.convert_frame", self._watch_recompilations)
        when_imported("torch._inductor.config", self._ask_for_provenance)
        when_imported("torch._inductor.output_code", self._watch_graphs)

    def remove(self) -> None:
        """Put torch's own back."""
        self.patches.restore()

    def facts(self) -> dict[str, Any]:
        """Graph breaks and recompilations with their counts and milliseconds, and the lines of each
        kernel."""
        events = [
            {
                **dict(zip(("kind", "file", "line", "reason"), key)),
                "count": count,
                "milliseconds": self.took_ns.get(key, 0) / 1e6,
            }
            for key, count in self.events.items()
        ]
        return {"compile_events": events, "compiled_kernels": self.kernels}

    def _event(self, kind: str, file: str, line: int, reason: str) -> tuple[str, str, int, str]:
        key = (kind, file, line, reason.strip()[:600])
        self.events[key] = self.events.get(key, 0) + 1
        return key

    def _watch_breaks(self, module: Any) -> None:
        from torch._dynamo import exc

        def note(error: Any, reason: str) -> None:
            place = self._innermost(getattr(error, "real_stack", None) or ())
            if place is not None:
                self._event("graph_break", place[0], place[1], reason)

        def make_log(original: Function) -> Function:
            def log_graph_break(
                self_: Any, code_options: Any, reason: str = "", exc: Any = None, **named: Any
            ) -> Any:
                if exc is not None and not getattr(exc, "logged", False):
                    note(exc, reason)
                return original(self_, code_options, reason=reason, exc=exc, **named)

            return log_graph_break

        def make_stats(original: Function) -> Function:
            def add_to_stats(self_: Any, category: str = "unimplemented") -> Any:
                if category == "graph_break":
                    note(self_, str(self_))
                return original(self_, category)

            return add_to_stats

        base = getattr(module, "InstructionTranslatorBase", None)
        if base is not None and "log_graph_break" in vars(base):
            self.patches.replace(base, "log_graph_break", make_log)
        else:  # torch before 2.7
            self.patches.replace(exc.Unsupported, "add_to_stats", make_stats)

    def _watch_recompilations(self, module: Any) -> None:
        skip: Any = getattr(module, "skip_code", None)
        for code in _ours() if skip is not None else ():
            skip(code)

        def make(original: Function) -> Function:
            def reasons_of(entries: Any, frame: FrameType, *arguments: Any, **named: Any) -> Any:
                reasons = original(entries, frame, *arguments, **named)
                if reasons:
                    path = self.user_files[frame.f_code.co_filename]
                    if path is not None:
                        line = frame.f_code.co_firstlineno
                        self._recompiled = self._event("recompile", path, line, reasons[0])
                return reasons

            return reasons_of

        def count(original: Function) -> Function:
            def _compile(*arguments: Any, **named: Any) -> Any:
                self.compilations += 1
                self.tell(True)
                self._recompiled, begin = None, perf_counter_ns()
                try:
                    return original(*arguments, **named)
                finally:
                    if (key := self._recompiled) is not None:
                        self._recompiled = None
                        self.took_ns[key] = self.took_ns.get(key, 0) + perf_counter_ns() - begin
                    self.tell(False)

            return _compile

        for name in ("get_and_maybe_log_recompilation_reasons", "get_and_maybe_log_recompilation_reason"):
            self.patches.replace(module, name, make)
        self.patches.replace(module, "_compile", count)

    def _ask_for_provenance(self, module: Any) -> None:
        trace: Any = getattr(module, "trace", None)
        self.provenance = hasattr(trace, "provenance_tracking_level")
        if self.provenance:
            trace.provenance_tracking_level = max(1, trace.provenance_tracking_level)

    def _watch_graphs(self, module: Any) -> None:
        def make(original: Function) -> Function:
            def post_compile(
                self_: Any, example_inputs: Any, constants: Any, graph_kwargs: Any, *more: Any
            ) -> Any:
                try:
                    stacks = json.loads(self_.inductor_provenance_stack_traces_str or "{}")
                    source = getattr(self_, "source_code", None) or ""
                    backward = bool(graph_kwargs["is_backward"])
                    self._graph(calls_of(source, stacks), backward, doubles_in(source))
                except Exception:
                    pass
                return original(self_, example_inputs, constants, graph_kwargs, *more)

            return post_compile

        self.patches.replace(module.CompiledFxGraph, "post_compile", make)

    def _graph(self, calls: list[tuple[str, Any]], backward: bool, doubles: set[str]) -> None:
        from torch._guards import CompileContext

        region = str(CompileContext.current_compile_id() or "")
        for name, stacks in calls:
            lines = {}
            for stack in stacks or ():
                place = self._innermost(_FRAME.findall(stack))
                if place is not None:
                    lines[place] = True
            self.kernels.append(
                {
                    "name": name,
                    "lines": list(lines),
                    "backward": backward,
                    "graph": self.graphs,
                    "region": region,
                    "traced": bool(stacks),
                    "double": name in doubles,
                }
            )
        self.graphs += 1

    def _innermost(self, stack: Iterable[Any]) -> Location | None:
        """``(file, line, function)`` of the innermost user's frame; ``stack`` has it last."""
        for frame in reversed(list(stack)):
            file, line, function = (
                frame if isinstance(frame, tuple) else (frame.filename, frame.lineno, frame.name)
            )
            path = self.user_files[file]
            if path is not None:
                resumed = _RESUMED.match(function)
                return path, int(line), resumed[1] if resumed else function
        return None


def doubles_in(source: str) -> set[str]:
    """The Triton kernels of a graph that have more pointers to float64 than to other floats, in its code."""
    found = set()
    for text in source.split("async_compile.triton(")[1:]:
        pointers = _POINTER.findall(text.partition("device_str=")[0])
        if 2 * pointers.count("fp64") > len(pointers):
            found.add(text.split("'", 2)[1])
    return found


def calls_of(source: str, stacks: dict[str, Any]) -> list[tuple[str, Any]]:
    """(name, stacks of the nodes it was made of) of each call in ``source``, the code of a graph, in order;
    none where torch does not say.

    ``stacks``: Inductor's table, by ``NAME:NUMBER``. Without numbers in the code, in the table's order.
    """
    calls, announced = [], ""
    for name, number, launched in _CALL.findall(source):
        if name:
            calls.append((name, stacks.get(name + ":" + number, ())))
        elif launched != announced:
            calls.append((launched, ()))
        announced = name
    if any(of for _, of in calls):
        return calls
    return [(key.rpartition(":")[0] or key, of) for key, of in stacks.items()]


def _ours() -> Iterable[CodeType]:
    """The runner's code. Dynamo would take it for the script's where it runs amid compiled code: our trace
    functions before Python 3.12, and what we put around torch's own functions."""
    package = __name__.partition(".compiled.")[0]
    for name, module in list(sys.modules.items()):
        if name.startswith(package):
            for value in vars(module).values():
                for function in (value, *(vars(value).values() if isinstance(value, type) else ())):
                    for code in codes_in(getattr(function, "__code__", None)):
                        if is_ours(code.co_filename):
                            yield code
