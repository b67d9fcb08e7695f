"""The user's named ranges (``record_function``, NVTX), with their share of the step."""

from __future__ import annotations

import numpy as np

from warpline.attribution.accounting import Account
from warpline.attribution.scene import Scene
from warpline.attribution.timeline import union
from warpline.model.profile import Mark
from warpline.trace import nest
from warpline.trace.columns import Bools, Ints, Trace, occurring

#: Made by torch or by the runner, not by the user.
NOT_THE_USERS = (
    "ProfilerStep#", "Optimizer.", "enumerate(DataLoader)", "warpline.", "nccl:", "DistributedDataParallel.",
    "## Call CompiledFxGraph", "Torch-Compiled Region", "CompiledFxGraph", "PyTorch Profiler", "TorchDynamo",
    "gloo:", "FSDP::", "Pregraph bytecode",
)  # fmt: skip
#: The range of a whole step, if the script marks its steps itself.
STEP_MARK = "step"
LOADER_PREFIXES = ("enumerate(DataLoader)", "warpline.loader")
#: The runner names an NVTX range "nvtx:DOMAIN:NAME".
NVTX_PREFIX = "nvtx:"


def users_marks(scene: Scene, accounted: Account) -> tuple[Mark, ...]:
    """One entry for each name and domain, longest first. ``device_ms``: of the kernels launched in the
    range."""
    trace, marks, host, window = scene.trace, scene.trace.marks, scene.trace.host, scene.window
    profiled_ns = scene.profiled_ms * 1e6
    launch = trace.kernels.launch
    known = np.flatnonzero(launch >= 0)
    # A backward pass launches its kernels from autograd's threads, while the calling thread waits.
    engine = occurring(host.thread[host.forward_thread > 0], len(trace.threads))
    out = []
    for name in np.unique(marks.name).tolist():
        text = trace.names[name]
        if text.startswith(NOT_THE_USERS) or text == STEP_MARK:
            continue
        rows = np.flatnonzero((marks.name == name) & scene.inside(marks.start_ns, marks.end_ns))
        if not len(rows):
            continue
        start, end = np.clip(marks.start_ns[rows], *window), np.clip(marks.end_ns[rows], *window)
        spans = union(start, end)
        # A window often ends inside a range, and the profiler may have missed the first one. So the ranges
        # that begin in the window are counted. If none does, each counts as the part of it in the window.
        whole = np.maximum(marks.end_ns[rows] - marks.start_ns[rows], 1)
        begun = int(scene.begun(marks.start_ns[rows]).sum())
        count = float(begun) if begun else float((np.maximum(end - start, 1) / whole).sum())
        wall_ns = float((spans[1] - spans[0]).sum()) / trace.steps
        share = wall_ns / profiled_ns if profiled_ns else 0.0
        covered = np.zeros(len(known), bool)
        for thread in np.unique(marks.thread[rows]).tolist():
            mine = marks.thread[rows] == thread
            launcher = host.thread[launch[known]]
            covered |= ((launcher == thread) | np.isin(launcher, engine)) & inside(
                *union(start[mine], end[mine]), host.start_ns[launch[known]]
            )
        domain, _, label = (
            text[len(NVTX_PREFIX) :].partition(":") if text.startswith(NVTX_PREFIX) else ("", "", text)
        )
        out.append(
            Mark(
                label or domain,
                count / trace.steps,
                share * accounted.step_ms,
                share,
                float(accounted.kernel_ms[known[covered]].sum()),
                domain if label else "",
            )
        )
    return tuple(sorted(out, key=lambda mark: -mark.wall_ms))


def loader_spans(trace: Trace, thread: int) -> tuple[Ints, Ints]:
    """Spans (start, end in ns) in which ``thread`` waited for the next batch, or loaded it."""
    wanted = trace.names.mask(*LOADER_PREFIXES)
    rows = np.flatnonzero(wanted[trace.marks.name] & (trace.marks.thread == thread))
    return union(trace.marks.start_ns[rows], trace.marks.end_ns[rows])


def inside(start: Ints, end: Ints, time: Ints) -> Bools:
    """Which moments are in one of the disjoint sorted spans."""
    if not len(start):
        return np.zeros(len(time), bool)
    at = nest.latest(start, time)
    covered: Bools = (at >= 0) & (time < end[at])
    return covered
