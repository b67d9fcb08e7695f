"""Generation: what the forward passes of ``generate`` take, those that read the prompt apart from those that
make one further token each.

A pass has its time from the account like everything else: kernels belong to the pass that queued them, idle
moments to the pass that the host is in. Captured steps may have other numbers of passes than timed ones, as
where texts end early, or no prefill at all, where a step is one pass. The numbers are those of the timed
steps. On a CPU so are the times, since what runs there takes what its call takes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from warpline.attribution.accounting import Account
from warpline.attribution.scene import Scene
from warpline.attribution.timed_calls import number_of, spans_of
from warpline.model import steady
from warpline.model.report import Passes, Tokens
from warpline.trace.columns import Bools, Floats, Ints
from warpline.wire.generation import CALL, DECODE, ENCODER, PREFILL, Generation

NS_PER_MS = 1e6


@dataclass(frozen=True, slots=True)
class Within:
    """What is in passes of one kind: the share of each piece of the account, and of each kernel (on a GPU) or
    host event (on a CPU)."""

    pieces: Floats
    work: Bools


@dataclass(frozen=True, slots=True)
class Generated:
    tokens: Tokens  # of the line
    prefill: Within
    decode: Within


@dataclass(frozen=True, slots=True)
class _Kind:
    """Captured passes of one kind: how many, and their times, each per step."""

    count: float
    step_ms: float
    device_ms: float
    idle_ms: float


@dataclass(frozen=True, slots=True)
class _Captured:
    """``other_ms``: what is neither, of all of the calls."""

    first: _Kind
    later: _Kind
    other_ms: float
    calls_ms: float


def generated(scene: Scene, accounted: Account) -> dict[int, Generated]:
    """The tokens of each line that calls ``generate``, by its number."""
    found = {}
    for one in scene.trace.facts.generations:
        number = number_of(scene, one)
        if number and (one.prefills or one.decodes or one.spans):
            made = _generated(scene, accounted, one, number)
            if made is not None:
                found[number] = made
    return found


def _generated(scene: Scene, accounted: Account, one: Generation, number: int) -> Generated | None:
    call, prefill, decode = (
        _within(scene, accounted, spans_of(one, *kinds)) for kinds in ((CALL,), (PREFILL, ENCODER), (DECODE,))
    )
    parts = accounted.parts
    in_calls = float((parts.step_ms * call.pieces)[parts.line > 0].sum())
    outside = float((parts.step_ms * (1 - call.pieces))[parts.line == number].sum())
    first, later = (
        _Kind(_begun(scene, one, kind), *_times(scene, accounted, within))
        for kind, within in ((PREFILL, prefill), (DECODE, decode))
    )
    counts = _counts(scene, one, first, later)
    if not sum(counts):
        return None
    captured = _Captured(first, later, max(0.0, in_calls - first.step_ms - later.step_ms), in_calls)
    alone = None if first.count else _prefill_alone(scene, captured)
    first_ms, later_ms, other_ms = _settled(scene, one, captured, counts, alone)
    reads = _passes(scene, first, counts[0], first_ms, _host(scene, one, PREFILL))
    if alone is not None:
        reads = _with_work(scene, reads if reads.count else replace(reads, pass_ms=alone))
    makes = _passes(scene, later, counts[1], later_ms, _host(scene, one, DECODE))
    return Generated(Tokens(reads, makes, other_ms, outside), prefill, decode)


def _within(scene: Scene, accounted: Account, spans: tuple[Ints, Ints]) -> Within:
    """What is in ``spans``: work by when it was queued, idle moments by their own time."""
    parts, idle = accounted.parts, accounted.idle
    busy = np.flatnonzero(parts.work >= 0)
    work = _at(_queued(scene), spans)
    share = np.zeros(len(parts.line))
    share[busy] = work[parts.work[busy]]
    length = idle.length_ns.astype(np.float64)
    overlap = _before(idle.end_ns, spans) - _before(idle.start_ns, spans)
    share[parts.work < 0] = np.divide(overlap, length, out=np.zeros(len(idle)), where=length > 0)
    return Within(share, work)


def _queued(scene: Scene) -> Ints:
    """When each kernel was queued; on a CPU, when each host event began."""
    trace = scene.trace
    if not trace.on_gpu:
        return trace.host.start_ns
    launch = trace.kernels.launch
    if not len(trace.host):
        return trace.kernels.start_ns
    return np.where(launch >= 0, trace.host.start_ns[launch], trace.kernels.start_ns)


def _at(when: Ints, spans: tuple[Ints, Ints]) -> Bools:
    start, end = spans
    at = np.searchsorted(start, when, "right") - 1
    inside: Bools = (at >= 0) & (when < np.append(end, 0)[at])
    return inside


def _before(when: Ints, spans: tuple[Ints, Ints]) -> Floats:
    """How much of the spans lies before each time."""
    start, end = spans
    sums = np.concatenate([[0], np.cumsum(end - start)])
    at = np.searchsorted(start, when, "right")
    over = np.append(end, 0)[at - 1] - when
    return np.where(at > 0, sums[at] - np.maximum(over, 0), 0).astype(np.float64)


def _times(scene: Scene, accounted: Account, within: Within) -> tuple[float, float, float]:
    """Milliseconds per step of what is ``within``: of the step, of the device, and with the device idle."""
    parts = accounted.parts
    known = parts.line > 0
    in_step = parts.step_ms * within.pieces
    of_work = accounted.kernel_ms if scene.trace.on_gpu else accounted.op_ms
    device = float(of_work[within.work].sum())
    return float(in_step[known].sum()), device, float(in_step[known & (parts.work < 0)].sum())


def _begun(scene: Scene, one: Generation, kind: int) -> float:
    """Captured passes of a kind, per step."""
    start, end = scene.trace.window_ns
    return sum(span[2] == kind and start <= span[0] < end for span in one.spans) / scene.trace.steps


def _counts(scene: Scene, one: Generation, first: _Kind, later: _Kind) -> tuple[float, float]:
    """Passes per step: of the timed steps, where these were counted."""
    timed = len(scene.trace.manifest.timed_ns)
    if timed and one.prefills + one.decodes:
        return one.prefills / timed, one.decodes / timed
    return first.count, later.count


def _host(scene: Scene, one: Generation, kind: int) -> float | None:
    """Milliseconds of the host in a pass, without the profiler; with it, where none was timed."""
    count, ns = (one.prefills, one.prefill_ns) if kind == PREFILL else (one.decodes, one.decode_ns)
    if count:
        return ns / count / NS_PER_MS
    kinds = (PREFILL, ENCODER) if kind == PREFILL else (DECODE,)
    lengths = [span[1] - span[0] for span in one.spans if span[2] in kinds]
    passes = sum(span[2] == kind for span in one.spans)
    return sum(lengths) / passes / NS_PER_MS if passes else None


def _settled(
    scene: Scene, one: Generation, captured: _Captured, counts: tuple[float, float], alone: float | None
) -> tuple[float, float, float]:
    """Milliseconds per step of prefills, decodes and the rest of the calls, which add up to all of the calls.
    ``alone``: a prefill, where none was captured."""
    first, later, other, calls = captured.first, captured.later, captured.other_ms, captured.calls_ms
    passes = one.prefill_ns + one.decode_ns
    if not scene.trace.on_gpu and scene.trace.manifest.timed_ns and one.calls_ns >= passes > 0:
        a_ns = calls / one.calls_ns
        return one.prefill_ns * a_ns, one.decode_ns * a_ns, (one.calls_ns - passes) * a_ns
    prefill = first.step_ms * counts[0] / first.count if first.count else 0.0
    decode = later.step_ms * counts[1] / later.count if later.count else 0.0
    rest = other * sum(counts) / (first.count + later.count) if first.count + later.count else other
    known = 0.0 if alone is None else min(alone * counts[0], calls)
    total = prefill + decode + rest
    scale = (calls - known) / total if total > 0 else 0.0
    return known or prefill * scale, decode * scale, rest * scale


def _prefill_alone(scene: Scene, captured: _Captured) -> float | None:
    """Milliseconds of a prefill where no captured step has one: of the timed steps that began with one, or of
    one that was timed later. Such a step is one pass, and what ``generate`` does beside each."""
    facts, manifest = scene.trace.facts, scene.trace.manifest
    timed = np.array(steady.steps_ns(manifest, facts)) / NS_PER_MS
    if manifest.step_source != "forward" or not len(timed):
        return None
    first = np.zeros(len(timed), bool)
    first[[at for at in facts.prefill_steps if 0 <= at < len(timed)]] = True
    if first.any():
        whole = float(timed[first].mean())
    elif facts.prefill_ns is not None:
        whole = facts.prefill_ns / NS_PER_MS
    else:
        return None
    beside = captured.other_ms / captured.calls_ms if captured.calls_ms else 0.0
    usual = float(timed[~first].mean()) if not first.all() else 0.0
    return max(0.0, whole - beside * usual)


def _with_work(scene: Scene, passes: Passes) -> Passes:
    """With the device's work in a prefill that was recorded after the capture."""
    recorded = scene.trace.facts.prefill_device_ns
    if recorded is None:
        return passes
    device = min(recorded / NS_PER_MS, passes.pass_ms)
    return replace(passes, pass_device_ms=device, pass_idle_ms=passes.pass_ms - device)


def _passes(scene: Scene, kind: _Kind, count: float, step_ms: float, host_ms: float | None) -> Passes:
    """``step_ms``: of all of them. A captured pass is stretched to it, but for what a device beside the host
    does in one."""
    a_pass = step_ms / count if count else 0.0
    if not kind.count:
        return Passes(count, step_ms, a_pass, None, None, host_ms)
    device, idle = kind.device_ms / kind.count, kind.idle_ms / kind.count
    stretched = a_pass * kind.count / kind.step_ms if kind.step_ms > 0 else 0.0
    device *= 1.0 if scene.trace.on_gpu else stretched
    return Passes(count, step_ms, a_pass, device, idle * stretched, host_ms)
