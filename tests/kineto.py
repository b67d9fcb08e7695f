"""Runs built by hand, in the format that Kineto writes for a CUDA device.

No GPU can be had where the tests run, so these stand for the real thing. The fields and categories are
those of published excerpts of Kineto's traces and of a trace generator made after them; no trace that
was recorded on a device for this project stands behind them yet. Times are microseconds from the
window's start.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from warpline.attribution import attribute
from warpline.model.profile import LineCost, Profile
from warpline.trace import Trace, read
from warpline.wire.inside import INSIDE_PAIRS, INSIDE_TABLE, LibraryLocations
from warpline.wire.run import (
    CompiledKernel,
    DeviceFacts,
    Facts,
    Locations,
    Manifest,
    Request,
)

BASE_NS = 1_790_857_026_000_000_000
ZERO_US = 1_000.0  # the window's start within the trace
MAIN, AUTOGRAD, OTHER = 4100, 4177, 4178
STREAM = 7
RESUMED = "torch_dynamo_resume_in_forward_at_12"
AT_OTHERS = (RESUMED.replace("_12", "_30"), RESUMED.replace("_12", "_20"))
FUNCTIONS = ("<module>", "Net.forward", "helper", RESUMED, *AT_OTHERS)
LIBRARY = "/site-packages/lib/layers.py"


def ns(us: float) -> int:
    return BASE_NS + round((ZERO_US + us) * 1000)


@dataclass
class KinetoRun:
    """``window_us``: the captured steps, of equal length; ``timed_us``: a step without the profiler."""

    folder: Path
    window_us: float
    steps: int = 1
    timed_us: float | None = None
    device: DeviceFacts = field(default_factory=lambda: DeviceFacts("cuda", "NVIDIA H200", 1))
    facts: dict[str, Any] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)
    records: list[tuple[int, int, int]] = field(default_factory=list)
    locations: list[tuple[int, int, int]] = field(default_factory=lambda: [(-1, 0, -1)])
    #: (kernel, lines, of a backward graph), in the order of Inductor's lists
    compiled: list[tuple[str, tuple[int, ...], bool]] = field(default_factory=list)
    #: (frame, of a backward graph, calls in order, each with its lines, None: unknown) of each compiled graph
    graphs: list[tuple[str, bool, list[tuple[str, tuple[int, ...] | None]]]] = field(default_factory=list)
    #: (time, thread, location) of libraries' lines, and their table: (file, line, function, module)
    inside: list[tuple[int, int, int]] = field(default_factory=list)
    libraries: list[tuple[int, int, int, int]] = field(default_factory=lambda: [(-1, 0, -1, -1)])
    modules: list[str] = field(default_factory=list)
    correlation: int = 0
    text: str = "\n" * 200

    def complete(
        self, cat: str, name: str, span: tuple[float, float], where: tuple[int, int], **args: Any
    ) -> None:
        self.events.append(
            {
                "ph": "X", "cat": cat, "name": name, "pid": where[0], "tid": where[1],
                "ts": ZERO_US + span[0], "dur": span[1], "args": args,
            }
        )  # fmt: skip

    def line(
        self, at: float, number: int, function: str = "<module>", tid: int = MAIN, again: bool = False
    ) -> None:
        """From ``at`` on ``tid`` is at line ``number``, come back to it if ``again``; 0 is no line."""
        place = (0, number, FUNCTIONS.index(function)) if number else (-1, 0, -1)
        if place not in self.locations:
            self.locations.append(place)
        thread = (MAIN, AUTOGRAD, OTHER).index(tid)
        self.records.append((ns(at), thread, self.locations.index(place) | again << 31))

    def library(self, at: float, number: int, module: str | None = None, again: bool = False) -> None:
        """From ``at`` on the main thread is at line ``number`` of a library's file; 0 is in none."""
        if module is not None and module not in self.modules:
            self.modules.append(module)
        of = -1 if module is None else self.modules.index(module)
        place = (0, number, 0, of) if number else (-1, 0, -1, -1)
        if place not in self.libraries:
            self.libraries.append(place)
        self.inside.append((ns(at), 0, self.libraries.index(place) | again << 31))

    def op(self, name: str, start: float, length: float, tid: int = MAIN, **args: Any) -> None:
        known = {
            "seq": "Sequence number",
            "fwd": "Fwd thread id",
            "dims": "Input Dims",
            "types": "Input type",
        }
        self.complete(
            "cpu_op", name, (start, length), (MAIN, tid), **{known.get(k, k): v for k, v in args.items()}
        )

    def mark(self, name: str, start: float, length: float, tid: int = MAIN) -> None:
        self.complete("user_annotation", name, (start, length), (MAIN, tid))

    def call(self, name: str, start: float, length: float, tid: int = MAIN) -> int:
        """A runtime call; returns its correlation id."""
        self.correlation += 1
        self.complete("cuda_runtime", name, (start, length), (MAIN, tid), correlation=self.correlation)
        return self.correlation

    def kernel(self, start: float, length: float, launched: float, **args: Any) -> None:
        """A kernel and its launch, which takes 4 us; ``tid`` launches it, else as :meth:`replayed`."""
        calls = {"gpu_memcpy": "cudaMemcpyAsync", "gpu_memset": "cudaMemsetAsync"}
        call = calls.get(args.get("cat", ""), "cudaLaunchKernel")
        self.replayed(start, length, self.call(call, launched, 4, args.pop("tid", MAIN)), **args)

    def replayed(self, start: float, length: float, correlation: int, **args: Any) -> None:
        """Device work queued by the call ``correlation``; ``name``, ``cat`` and ``stream`` may be given."""
        name, cat, stream = args.pop("name", "gemm"), args.pop("cat", "kernel"), args.pop("stream", STREAM)
        self.complete(
            cat, name, (start, length), (0, stream), device=0, stream=stream, correlation=correlation, **args
        )

    def memory(
        self, at: float, size: int, address: int, total: int, tid: int = MAIN, on_device: bool = True
    ) -> None:
        self.events.append(
            {
                "ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": MAIN, "tid": tid,
                "ts": ZERO_US + at,
                "args": {
                    "Bytes": size, "Addr": address, "Total Allocated": total, "Device Type": int(on_device),
                    "Device Id": 0 if on_device else -1,
                },
            }
        )  # fmt: skip

    def write(self) -> Path:
        self.folder.mkdir(parents=True, exist_ok=True)
        script = self.folder / "train.py"
        each = self.window_us / self.steps
        captured = tuple((ns(each * at), ns(each * (at + 1))) for at in range(self.steps))
        timed = (round((self.timed_us or each) * 1000),)
        manifest = Manifest(
            1, BASE_NS, str(script), (), "3.12.1", "2.13.0", self.device, Request(target=str(script)),
            "optimizer", timed, captured, "monitoring", (str(self.folder),),
        )  # fmt: skip
        locations = Locations(
            (str(script), str(self.folder / "model.py")), FUNCTIONS,
            tuple(self.locations), (MAIN, AUTOGRAD, OTHER),
        )  # fmt: skip
        self.facts["compiled_kernels"] = [
            asdict(CompiledKernel(name, tuple((str(script), line, "forward") for line in lines), backward))
            for name, lines, backward in self.compiled
        ] + [
            asdict(
                CompiledKernel(
                    name,
                    tuple((str(script), line, "forward") for line in lines or ()),
                    backward,
                    graph,
                    region,
                    lines is not None,
                )
            )
            for graph, (region, backward, calls) in enumerate(self.graphs)
            for name, lines in calls
        ]
        trace = {
            "schemaVersion": 1,
            "baseTimeNanoseconds": BASE_NS,
            "deviceProperties": [],
            "traceEvents": self.events,
        }
        pairs, inside = (
            np.array([(time, thread << 32 | place) for time, thread, place in sorted(records)], "<i8")
            for records in (self.records, self.inside)
        )
        parts: dict[str, Any] = {
            "trace": trace, "facts": asdict(Facts()) | self.facts, "locations": asdict(locations),
            "sources": {str(script): self.text}, "manifest": asdict(manifest),
        }  # fmt: skip
        for name, value in parts.items():
            (self.folder / f"{name}.json").write_text(json.dumps(value), encoding="utf-8")
        (self.folder / "lines.bin").write_bytes(pairs.tobytes())
        if self.inside:
            table = LibraryLocations(
                (LIBRARY,), ("Layer.forward",), tuple(self.modules), tuple(self.libraries)
            )
            (self.folder / INSIDE_TABLE).write_text(json.dumps(asdict(table)), encoding="utf-8")
            (self.folder / INSIDE_PAIRS).write_bytes(inside.tobytes())
        return self.folder

    def trace(self) -> Trace:
        return read(self.write())

    def profile(self) -> Profile:
        return attribute(self.trace())


def at_line(profile: Profile, number: int) -> LineCost:
    """What line ``number`` cost; zeros when it is not in the profile."""
    return next((cost for cost in profile.lines if cost.line == number), LineCost("", number, ""))


def closed(profile: Profile) -> float:
    """Lines plus what is unattributed: the step, if the account is closed."""
    return sum(cost.step_ms for cost in profile.lines) + profile.unattributed.step_ms


def approx(value: float) -> object:
    """Equal but for floating point."""
    return pytest.approx(value, rel=1e-6, abs=1e-9)
