"""What a recorded run shows of each assumed figure: for ``fit.py``."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "server"))

from warpline import judging
from warpline.attribution.overhead import overhead
from warpline.attribution.peaks import peaks_of
from warpline.model import costs
from warpline.simulate import calibrate, loading
from warpline.simulate.casts import IN_FP32
from warpline.simulate.replay import replay
from warpline.simulate.timeline import Timeline, timeline_of
from warpline.simulate.work import ELEMENTWISE
from warpline.trace.columns import RUNTIME
from warpline.wire.run import Facts
from warpline.wire.sites import Loader, Optimizer, facts_of

#: Numbers in a tensor that a kernel is done with as soon as it is started.
FEW_NUMBERS = 4096
#: The host sets the pace where the device alone needs at most this share of the step.
HOST_BOUND = 0.7


class Recording:
    """One recorded run, with what several figures need of it."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.read = judging.read(folder, None)
        self.trace = self.read.trace
        timed = self.trace.manifest.timed_ns
        self.step_ns = sum(timed) / len(timed) if timed else 0.0
        self.raw: Timeline = timeline_of(self.trace, self.read.places)
        self.line = calibrate.unblocked(self.raw)
        sites = [site for site in self.trace.facts.sites if site.kind == Loader.KIND]
        self.workers = max((int(facts_of(Loader, site).num_workers or 0) for site in sites), default=0)

    def host_bound(self) -> bool:
        """The step is the host's: neither the device nor a loader with workers explains it."""
        if not self.step_ns or not len(self.line.kernel_ns) or self.workers:
            return False
        return self.alone_ns() < HOST_BOUND * self.step_ns

    def alone_ns(self) -> float:
        """The step if only the device took its time."""
        return replay(self.line, replace(calibrate.delays(self.line), host=calibrate.LEAST))

    def seen_ahead(self) -> float | None:
        """The host's scale by how far it ran ahead of an idle device."""
        if not self.step_ns or not len(self.line.kernel_ns):
            return None
        line = calibrate.evened(calibrate.relieved(self.trace, self.line, self.step_ns))
        return calibrate.seen_ahead(line, calibrate.delays(line), None, self.trace.facts)


Figure = Callable[[Recording], float | None]


def op_record_ns(one: Recording) -> float | None:
    """What the record of an operator added, its launches included."""
    return (
        overhead(one.trace, one.step_ns, one.trace.window_ns).per_op_ns or None if one.host_bound() else None
    )


def host_own(one: Recording) -> float | None:
    """Of host time the share that is the host's own, the records' cost taken off."""
    if not one.host_bound():
        return None
    # A window that was no slower than its steps shows no records: then they cost what they usually do.
    low, high = one.trace.window_ns
    line = calibrate.evened(calibrate.relieved(one.trace, one.line, (high - low) / one.trace.steps))
    return calibrate.calibrated(line, one.step_ns, None).host


def device_clock(one: Recording) -> float | None:
    """The step that was timed, by the time the recorded kernels take alone: where those are all of it."""
    if not one.step_ns or not len(one.line.kernel_ns) or one.host_bound() or one.workers:
        return None
    if calibrate.shared(one.trace.facts):
        return None  # other processes used the device
    alone = one.alone_ns()
    return one.step_ns / alone if alone > calibrate.CLOSE * one.step_ns else None


def host_spread(one: Recording) -> float | None:
    """How far the host's scale, as seen ahead of an idle device, is from the usual one, in logarithms."""
    seen = one.seen_ahead()
    return abs(math.log(seen / calibrate.USUAL)) if seen is not None else None


def seen_spread(one: Recording) -> float | None:
    """The same from what was seen ahead of an idle device, where the host sets the pace."""
    own, seen = host_own(one), one.seen_ahead()
    return abs(math.log(own / seen)) if own is not None and seen is not None else None


def device_spread(one: Recording) -> float | None:
    """How far a step that the recorded device explains alone is from its usual share, in logarithms."""
    clock = device_clock(one)
    return abs(math.log(clock / costs.value("device-alone"))) if clock is not None else None


def take_ns(one: Recording) -> float | None:
    """What a batch that workers made costs the main process, where it does not wait for it."""
    spent, batches = loading.waited_ns(one.raw)
    if not one.workers or not batches or spent / one.raw.host_ns.sum() > loading.WAITS:
        return None
    return spent / batches


def reached(name: str) -> Figure:
    def found(one: Recording) -> float | None:
        sheet, measured = peaks_of(one.trace.manifest.device.name, Facts()), one.trace.facts.peaks
        peak = getattr(sheet, {"bf16": "half", "fp16": "half"}.get(name, name), None) if sheet else None
        value = getattr(measured, name)
        return value / peak if value and peak else None

    return found


def latency_ns(one: Recording) -> float | None:
    """From the end of a launch to its kernel, where the stream had nothing else to do."""
    kernels, host = one.trace.kernels, one.trace.host
    launched = np.flatnonzero(kernels.launch >= 0)
    by = launched[np.lexsort((kernels.start_ns[launched], kernels.device_stream[launched]))]
    start, stream = kernels.start_ns[by], kernels.device_stream[by]
    queued = host.end_ns[kernels.launch[by]]
    before = np.concatenate([[np.int64(0)], np.where(stream[1:] == stream[:-1], kernels.end_ns[by][:-1], 0)])
    idle = (before < queued) & (start > queued)
    return float(np.median((start - queued)[idle])) if idle.sum() >= 20 else None


def sync_ns(one: Recording) -> float | None:
    """A wait for nothing: the quickest tenth of the calls that wait."""
    host = one.trace.host
    waits = one.trace.names.containing("ynchronize")
    rows = (host.kind == RUNTIME) & waits[host.name]
    return float(np.percentile((host.end_ns - host.start_ns)[rows], 10)) if int(rows.sum()) >= 10 else None


def short_kernel_ns(one: Recording) -> float | None:
    """A kernel of an elementwise operator on a few numbers: all launch and tail."""
    line, trace = one.line, one.trace
    rows = np.flatnonzero((line.kernel_work == ELEMENTWISE) & (line.kernel_op >= 0))
    shapes = [trace.signatures[int(trace.host.signature[op])].shapes for op in line.kernel_op[rows].tolist()]
    small = [bool(one) and max(int(np.prod(shape)) for shape in one) <= FEW_NUMBERS for one in shapes]
    times = line.kernel_ns[rows][np.array(small, bool)]
    return float(np.median(times)) if len(times) >= 20 else None


def least_kernel_ns(one: Recording) -> float | None:
    """The shortest twentieth of the kernels."""
    times = one.line.kernel_ns
    return float(np.percentile(times, 5)) if len(times) >= 100 else None


def gap_ns(one: Recording) -> float | None:
    return calibrate.delays(one.line).gap_ns if len(one.line.kernel_ns) else None


def copy_rate(one: Recording, memory: str) -> float | None:
    """Gigabytes a second from ``memory`` ("Pinned", "Pageable") to the device, by copies of a megabyte."""
    line = one.line
    rows = one.trace.names.containing(f"HtoD ({memory}")[line.kernel_name] & (line.kernel_bytes >= 1 << 20)
    return float(line.kernel_bytes[rows].sum() / line.kernel_ns[rows].sum()) if rows.any() else None


def optimizer_launches(one: Recording) -> float | None:
    """Kernels of a fused optimizer, a step."""
    fused = [
        site
        for site in one.trace.facts.sites
        if site.kind == Optimizer.KIND and facts_of(Optimizer, site).fused
    ]
    names = one.trace.names.mask("aten::_fused_")
    line = one.line
    rows = (line.kernel_op >= 0) & names[one.trace.host.name[line.kernel_op]]
    return float(rows.sum() / line.steps) if fused and rows.any() else None


def record_ns(field: str) -> Figure:
    """What the runner measured for a record in the run's own process."""
    return lambda one: getattr(one.trace.facts, field) or None


FIGURES: dict[str, Figure] = {
    "op-record-ns": op_record_ns,
    "host-own": host_own,
    "host-spread": host_spread,
    "seen-spread": seen_spread,
    "device-alone": device_clock,
    "device-spread": device_spread,
    "batch-take-ns": take_ns,
    "reached-fp32": reached("fp32"),
    "reached-tf32": reached("tf32"),
    "reached-bf16": reached("bf16"),
    "reached-fp16": reached("fp16"),
    "reached-bandwidth": reached("bytes_per_s"),
    "launch-latency-ns": latency_ns,
    "sync-ns": sync_ns,
    "short-kernel-ns": short_kernel_ns,
    "least-kernel-ns": least_kernel_ns,
    "kernel-gap-ns": gap_ns,
    "optimizer-launches": optimizer_launches,
    "measured-op-ns": record_ns("op_record_ns"),
    "measured-launch-ns": record_ns("launch_record_ns"),
}


def between_ms(one: Recording) -> float:
    """Device time of the kernels between the products that autocast does not keep in float32, a step."""
    line, trace = one.line, one.trace
    wide = trace.names.mask(*IN_FP32)[trace.host.name[line.kernel_op]] & (line.kernel_op >= 0)
    rows = (line.kernel_work == ELEMENTWISE) & ~wide
    return float(one.line.kernel_ns[rows].sum() / one.line.steps / 1e6)
