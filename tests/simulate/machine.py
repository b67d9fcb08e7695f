"""A machine that never was, for traces that no CI machine can record (there is no GPU in it).

A program of host steps is run by the rules of one host and one stream, and written down as the
Chrome trace that torch would have exported. Changing the *program* gives the truth that a
prediction from the unchanged trace is compared with.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from warpline.simulate import Places, Simulation
from warpline.trace import Trace, read
from warpline.wire.facts import Flags, MeasuredPeaks, Nvml
from warpline.wire.run import DeviceFacts, Facts, Locations, Manifest, Request, Site
from warpline.wire.workers import Workers

FILE = "/train.py"
US = 1_000
BASE = 1_000_000_000_000
MAIN = 77
LATENCY, GAP, CALL = 3 * US, 1 * US, 5 * US
#: A pageable copy's call returns this long before the copy ends (5 us on an H100, for 22 MB).
LAST_PIECE = 5 * US


@dataclass
class Machine:
    """Runs a program and notes what happened. Times in microseconds, lines of ``FILE``."""

    on_gpu: bool = True
    now: int = 0
    free: int = 0
    correlation: int = 0
    events: list[dict[str, Any]] = field(default_factory=list)
    records: list[tuple[int, int]] = field(default_factory=list)
    steps: list[tuple[int, int]] = field(default_factory=list)
    slots: dict[int, int] = field(default_factory=dict)  # when the work before each event is done

    def work(self, line: int, us: float) -> None:
        """Python, no operator."""
        self.records.append((self.now, line))
        self.now += int(us * US)

    def op(
        self, line: int, name: str, us: float, kernel_us: float = 0.0, shapes: object = (), kernel: str = ""
    ) -> None:
        """An operator: ``us`` of host time and, on a GPU, one kernel, named after it or ``kernel``."""
        self.records.append((self.now, line))
        begun = self.now
        self.now += int(us * US)
        if self.on_gpu and kernel_us:
            self._launch("cudaLaunchKernel", "kernel", kernel or name.replace("aten::", "k_"), kernel_us)
        arguments = {"Input Dims": shapes, "Input type": ["float"] * len(shapes)}  # type: ignore[arg-type]
        self._event("cpu_op", name, begun, self.now - begun, MAIN, arguments)

    def copy(self, line: int, us: float, waits: bool = True) -> None:
        """A copy to the device; a pageable one holds the host until its last piece is on its way."""
        self.records.append((self.now, line))
        begun = self.now
        name = f"Memcpy HtoD ({'Pageable' if waits else 'Pinned'} -> Device)"
        self._launch("cudaMemcpyAsync", "gpu_memcpy", name, us, waits)
        self._event("cpu_op", "aten::copy_", begun, self.now - begun)

    def sync(self, line: int) -> None:
        self.records.append((self.now, line))
        begun = self.now
        self.now = max(self.now + 3 * US, self.free)
        self._event("cuda_runtime", "cudaStreamSynchronize", begun, self.now - begun)

    def record(self, line: int, slot: int) -> None:
        """An event behind all work that is queued."""
        self.records.append((self.now, line))
        self.slots[slot] = self.free
        self._event("cuda_runtime", "cudaEventRecordWithFlags", self.now, CALL)
        self.now += CALL

    def wait(self, line: int, slot: int) -> None:
        """Waits for an event, if it was recorded."""
        self.records.append((self.now, line))
        begun = self.now
        self.now = max(self.now + 3 * US, self.slots.get(slot, 0))
        self._event("cuda_runtime", "cudaEventSynchronize", begun, self.now - begun)

    def load(self, line: int, us: float) -> None:
        """A batch: made here, or waited for."""
        self.records.append((self.now, line))
        begun = self.now
        self.now += int(us * US)
        name = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
        self._event("user_annotation", name, begun, self.now - begun)

    def step(self, program: Any) -> None:
        begun = self.now
        program(self)
        self.steps.append((begun, self.now))

    def _launch(self, call: str, category: str, name: str, us: float, waits: bool = False) -> None:
        self.correlation += 1
        begun = self.now
        self.now += CALL
        start = max(self.now + LATENCY, self.free + GAP)
        self.free = start + int(us * US)
        arguments = {"correlation": self.correlation, "stream": 7, "device": 0}
        self._event(category, name, start, self.free - start, 7, arguments)
        if waits:
            self.now = max(self.now, self.free - LAST_PIECE)
        self._event("cuda_runtime", call, begun, self.now - begun, MAIN, arguments)

    def _event(self, category: str, name: str, ts: int, dur: int, *where: Any) -> None:
        thread, arguments = where or (MAIN, {})
        event = {"ph": "X", "cat": category, "name": name, "pid": MAIN, "tid": thread}
        self.events.append(event | {"ts": ts / US, "dur": dur / US, "args": arguments})


def run(program: Any, steps: int = 4, on_gpu: bool = True) -> tuple[Machine, float]:
    """The machine after some steps of ``program``, and the step's time (ms) in the steady state."""
    machine = Machine(on_gpu)
    program(machine)
    ends = []
    for _ in range(steps):
        machine.step(program)
        ends.append(max(machine.now, machine.free))
    return machine, (ends[-1] - ends[0]) / (steps - 1) / 1e6


def trace(
    machine: Machine,
    step_ms: float,
    *,
    workers: int = 0,
    peaks: dict[str, float] | None = None,
    cores: int = 16,
    threads: int | None = None,
    op_record_us: float | None = None,
    host_step_us: float | None = None,
    others: int = 0,
    clock_mhz: float = 1980.0,
    wait_ms: float | None = None,
    batch_ms: float | None = None,
) -> Trace:
    """What the server would read. Before its window lies one step that fills the queue. ``clock_mhz``: of
    1980; the power limit is the reason where it is less. ``wait_ms``: for the loader, in a timed step;
    ``batch_ms``: that a worker takes for a batch."""
    lines = sorted({line for _, line in machine.records})
    number = {line: at + 1 for at, line in enumerate(lines)}
    captured = tuple((BASE + low, BASE + high) for low, high in machine.steps)
    device = DeviceFacts("cuda", "NVIDIA H200", 1, (9, 0), 132) if machine.on_gpu else DeviceFacts()
    manifest = Manifest(
        1, BASE, FILE, (), "3.12", "2.11", device, Request(), "optimizer", (round(step_ms * 1e6),) * 5,
        captured, "monitoring", ("/",),
    )  # fmt: skip
    sites = (Site("loader", FILE, 1, "<module>", {"num_workers": workers, "wait_ms": wait_ms}),)
    record_ns = None if op_record_us is None else op_record_us * US
    host_ns = None if host_step_us is None else host_step_us * US
    flags = Flags(cpu_count=cores, threads=threads)
    facts = Facts(
        sites,
        flags,
        op_record_ns=record_ns,
        host_step_ns=host_ns,
        workers=None if batch_ms is None else Workers(0, batch_ms, ()),
        peaks=MeasuredPeaks(**(peaks or {})),
        nvml=Nvml(
            other_processes=others,
            clock_mhz=clock_mhz,
            max_clock_mhz=1980.0,
            throttle_power_cap=float(clock_mhz < 1980.0),
        ),
    )
    locations = Locations((FILE,), ("<module>",), ((-1, 0, -1), *((0, line, 0) for line in lines)), (MAIN,))
    chrome = {"traceEvents": machine.events, "baseTimeNanoseconds": BASE}
    records = np.array([(BASE + at, number[line]) for at, line in machine.records], "<i8")
    parts = {"manifest": manifest, "facts": facts, "locations": locations, "trace": chrome, "sources": {}}
    with tempfile.TemporaryDirectory() as name:
        run = Path(name)
        for part, value in parts.items():
            (run / f"{part}.json").write_bytes(msgspec.json.encode(value))
        (run / "lines.bin").write_bytes(records.tobytes())
        return read(run)


def places(of: Trace) -> Places:
    """Each event at the last record before it: there is no backward pass in these programs."""
    at = np.searchsorted(of.records.time_ns, of.host.start_ns, "right") - 1
    lines = tuple((FILE, line) if file >= 0 else ("", 0) for file, line, _ in of.locations.locations)
    return Places(of.records.location[np.maximum(at, 0)], np.arange(len(lines)), lines)


def simulation(
    program: Any, on_gpu: bool = True, slowed: float = 1.0, added: float = 0.0, **more: Any
) -> tuple[Simulation, float]:
    """The simulation of a recorded program and its true step time.

    ``slowed``: so many times longer all host work takes under the profiler; ``added``: so many
    microseconds each op takes longer, and a fifth of it each line.
    """
    _, truth = run(program, on_gpu=on_gpu)

    class Slowed(Machine):
        def work(self, line: int, us: float) -> None:
            Machine.work(self, line, us * slowed + added / 5)

        def op(self, line: int, name: str, us: float, *rest: Any, **more: Any) -> None:
            Machine.op(self, line, name, us * slowed + added * 1.2, *rest, **more)

        def load(self, line: int, us: float) -> None:
            Machine.load(self, line, us * slowed)

    machine = Slowed(on_gpu)
    program(machine)
    for _ in range(4):
        machine.step(program)
    seen = trace(machine, truth, **more)
    return Simulation(seen, places(seen)), truth
