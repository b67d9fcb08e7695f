"""What the account cannot say, in words."""

from __future__ import annotations

import numpy as np

from warpline.attribution.accounting import Account
from warpline.attribution.peaks import peaks_of
from warpline.attribution.scene import Scene
from warpline.model import units

#: Captured steps whose device work is this much longer than a whole timed step differ in kind.
DIFFERENT = 1.02


def notes(scene: Scene, accounted: Account) -> tuple[str, ...]:
    """The run's own notes, the trace's, and those of the account."""
    trace = scene.trace
    found = [*trace.manifest.notes, *trace.notes]
    graph_ms = float(accounted.kernel_ms[trace.kernels.in_graph].sum())
    if graph_ms > 0:
        found.append(
            f"{units.ms(graph_ms)} a step ran in replayed CUDA graphs: torch does not say which lines were "
            "captured, so this time is unattributed (the device was not idle)"
        )
    if silent := _silent_threads(scene):
        found.append(
            f"{silent} other threads ran lines of the script, and torch {trace.manifest.torch_version} "
            "recorded no operators there: what they computed is not attributed"
        )
    if not trace.on_gpu and any(one.name.startswith("cpp_") for one in trace.facts.compiled_kernels):
        found.append(
            "kernels that Inductor compiled for the CPU leave no events: their time stands at the def line "
            "of the compiled function, and only the library calls between them at their own lines"
        )
    if not trace.manifest.timed_ns:
        found.append("no step was timed without the profiler: times are those under it")
    if trace.on_gpu and accounted.device_busy_ms > accounted.step_ms * DIFFERENT:
        found.append(
            "the device worked longer in the captured steps than a step takes without the profiler: "
            "the steps differ in length"
        )
    if trace.on_gpu and peaks_of(trace.manifest.device.name, trace.facts) is None:
        name = trace.manifest.device.name or "this device"
        found.append(f"no roofline: the peaks of {name} are not known")
    return tuple(dict.fromkeys(found))


def _silent_threads(scene: Scene) -> int:
    """Threads with line records in the window and no op at all: older torch records one thread only."""
    trace = scene.trace
    at_work = np.unique(trace.records.thread[scene.begun(trace.records.time_ns)])
    return len(np.setdiff1d(at_work, np.append(trace.host.thread, trace.main)))
