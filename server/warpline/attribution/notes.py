"""Notes for the report on time that could not be attributed or measured."""

from __future__ import annotations

from statistics import median

import numpy as np

from warpline.attribution.accounting import Account
from warpline.attribution.driver import driver_notes
from warpline.attribution.peaks import peaks_of
from warpline.attribution.sampled import FEWEST
from warpline.attribution.scene import Scene
from warpline.attribution.stalled import stalled_ns
from warpline.attribution.timeline import union
from warpline.devices import can
from warpline.model import steady, units
from warpline.model.report import QUICKER
from warpline.trace.columns import COPY, OP
from warpline.wire.run import Facts, Manifest
from warpline.wire.sites import Loader, facts_of

#: If the device is busy in a captured step for this many times a timed step, the two are not alike.
DIFFERENT = 1.02
#: Share of the device's time from which on the time that other processes took of it is noted.
INTERRUPTED = 0.01
#: A captured step with this many times the operator calls of the median step did extra work.
UNEVEN = 1.5

#: Extra work of some timed steps, and time without a processor, are noted from this share of the time on.
UNSEEN = 0.1
#: The same share for sampled lines. Chosen: with loads of 8 to 18 on two cores, lines of nine public programs
#: were off by 2 to 26 % of the step (``docs/first-contact.md``).
CROWDED = 0.25
#: The same share for time at the ``def`` of a library's function. Chosen: as much as a part of a line has.
SHORTENED = 0.02
#: The same share for a garbage collection that is left out. Chosen: less than step times vary.
COLLECTED = 0.03
#: Slowed-down Python is noted if plain Python takes at least this share of the step.
PYTHON = 0.1


def notes(scene: Scene, accounted: Account) -> tuple[str, ...]:
    """The notes of the run and of the trace, and those on the account."""
    trace = scene.trace
    found = [*trace.manifest.notes, *begun_loaders(trace.manifest, trace.facts), *trace.notes]
    lost = trace.kernels.in_graph[scene.shares.kernel] & (scene.shares.line == 0)
    graph_ms = float((accounted.kernel_ms[scene.shares.kernel] * scene.shares.weight)[lost].sum())
    if graph_ms > 0:
        found.append(
            f"{units.ms(graph_ms)} a step ran in replayed CUDA graphs whose capture was not "
            "recorded: this time is not attributed to lines (the device was not idle)"
        )
    if silent := _silent_threads(scene):
        found.append(
            f"{silent} other {'thread' if silent == 1 else 'threads'} ran lines of the script, but "
            f"torch {trace.manifest.torch_version} recorded no operators there: their work is not "
            "attributed to lines"
        )
    found += _without_kernels(trace.manifest.device.kind)
    if not trace.on_gpu and any(one.name.startswith("cpp_") for one in trace.facts.compiled_kernels):
        found.append(
            "kernels that Inductor compiled for the CPU leave no events: their time is at the def "
            "line of the compiled function; only library calls have lines of their own"
        )
    sampled = not trace.on_gpu and trace.facts.samples.total >= FEWEST
    found += _queued(scene, sampled)
    found += _stalled(scene, accounted)
    if not sampled and (lines := len(np.unique(scene.table.of_location[scene.estimated()[0]]))):
        found.append(
            f"{lines} {'line' if lines == 1 else 'lines'} in loops of plain Python, recorded only "
            "at the start and the end of the loop: the time of each line is estimated from an "
            "earlier step"
        )
    if not sampled and _slowed(scene, accounted):
        found.append(
            "before Python 3.12, recording lines makes Python code two to three times slower, and "
            f"this run was not sampled ({_why_not(scene)}): times of lines of plain Python are estimates"
        )
    found += _library_lines(scene, accounted)
    timed_ns = steady.steps_ns(trace.manifest, trace.facts)
    if not timed_ns:
        found.append("no step was timed without the profiler: all times were measured under it")
    if trace.on_gpu and accounted.recorded_busy_ms > accounted.step_ms * DIFFERENT:
        found.append(
            "the device was busy for longer in a captured step than a whole step takes without "
            "the profiler: the steps differ in length, or the device was slower then (another "
            "process, or its clock rate)" + _interrupted(accounted)
        )
    elif scene.profiled_ms < scene.step_ms * QUICKER:
        found.append(
            "the captured steps were faster under the profiler than the timed steps without it: "
            "the steps differ in length, or the machine was busy"
        )
    if (times := _busiest(scene)) > UNEVEN:
        found.append(
            f"one of the {trace.steps} captured steps made {times:.1f} times as many operator "
            "calls as most: the share of its extra work (such as an evaluation) differs from that "
            "in the whole script; more steps (--steps) give a better average"
        )
    elif (unseen := _unseen(timed_ns, trace.manifest.captured)) > UNSEEN:
        found.append(
            "some timed steps took more than twice as long as most, and no such step was "
            f"captured: their extra {units.percent(unseen)} of the time is spread over the "
            f"captured lines ({_rare_work(scene, unseen)}); more steps (--steps) give a better average"
        )
    collected_ns = steady.left_out_ns(trace.manifest, trace.facts)
    if collected_ns > COLLECTED * sum(timed_ns):
        found.append(
            f"one of the {len(timed_ns)} timed steps had a full garbage collection of "
            f"{units.ms(collected_ns / 1e6)}, which is left out: one does not say how often they come"
        )
    if (at := trace.facts.flags.loss_not_finite_at) is not None:
        found.append(f"the loss was not finite at backward pass {at + 1} of the script")
    if trace.on_gpu:
        busy = min(1.0, accounted.device_busy_ms / accounted.step_ms) if accounted.step_ms else 0.0
        found += driver_notes(trace.facts, 100 * busy, 100 * busy * _copying(scene))
    if trace.on_gpu and peaks_of(trace.manifest.device.name, trace.facts) is None:
        name = trace.manifest.device.name or "this device"
        found.append(
            f"no roofline: the peak rates of {name} are unknown; `warpline profile --peaks` "
            "measures them once"
        )
    return tuple(dict.fromkeys(found))


def _library_lines(scene: Scene, accounted: Account) -> list[str]:
    """A note if a part of the step is in functions of libraries whose lines were not recorded; else none."""
    table = scene.trace.libraries
    at_def = np.isin(accounted.parts.inside, table.at_def)
    ms = float(accounted.parts.step_ms[at_def].sum())
    said = []
    if ms >= SHORTENED * accounted.step_ms:
        share = units.percent(ms / accounted.step_ms)
        said.append(
            f"{units.ms(ms)} a step ({share}), in calls unlike those recorded in full, is shown at the `def`"
        )
    if count := len(table.left_out):
        which = "one function is at the lines that call it"
        said.append(
            f"the time of {which if count == 1 else f'{count} functions is at the lines that call them'}"
        )
    if not said:
        return []
    return [
        "some functions of libraries run too many lines to record them all: "
        f"{', and '.join(said)}; --include FOLDER records all lines of the files below it, like your own"
    ]


def _interrupted(accounted: Account) -> str:
    if accounted.interrupted_ms < INTERRUPTED * accounted.recorded_busy_ms:
        return ""
    return (
        f"; {units.ms(accounted.interrupted_ms)} a step by which kernels took longer than the same ones of "
        "other captured steps are left out"
    )


def _copying(scene: Scene) -> float:
    """What share of the time in which the device is busy it only copies."""
    kernels = scene.trace.kernels
    begin, end = np.clip(kernels.start_ns, *scene.window), np.clip(kernels.end_ns, *scene.window)
    spans = [union(begin[rows], end[rows]) for rows in (kernels.kind != COPY, slice(None))]
    computing, busy = (int((until - since).sum()) for since, until in spans)
    return 1.0 - computing / busy if busy else 0.0


def _why_not(scene: Scene) -> str:
    """Why the line times of a CPU run do not come from samples."""
    if taken := scene.trace.facts.samples.total:
        return f"only {taken} samples were taken"
    return scene.trace.facts.samples.why or "the run does not say why"


def _slowed(scene: Scene, accounted: Account) -> bool:
    """Whether a trace function slowed down a large part of the step, on a CPU."""
    slow = scene.trace.manifest.line_events == "settrace" and not scene.trace.on_gpu
    return slow and float(accounted.idle_ms.sum()) > PYTHON * accounted.step_ms


def _busiest(scene: Scene) -> float:
    """Operator calls of the captured step with the most, divided by those of the median captured step."""
    host = scene.trace.host
    called = np.sort(host.start_ns[host.kind == OP])
    spans = np.array(scene.trace.manifest.captured, np.int64).reshape(-1, 2)
    counts = np.diff(np.searchsorted(called, spans), axis=1)
    middle = float(np.median(counts)) if len(counts) else 0.0
    return float(counts.max()) / middle if middle > 0 else 1.0


def _unseen(timed_ns: tuple[float, ...], captured: tuple[tuple[int, int], ...]) -> float:
    """Time by which long steps exceed the median step, as a share of the timing window; 0 where such a step
    was captured too."""
    timed = np.array(timed_ns, np.float64)
    middle = float(np.median(timed)) if len(timed) else 0.0
    long = timed[timed > 2 * middle]
    lengths = [end - begin for begin, end in captured]
    if lengths and max(lengths) > 2 * float(np.median(lengths)):
        return 0.0
    return float((long - middle).sum() / timed.sum()) if len(long) else 0.0


def _queued(scene: Scene, sampled: bool) -> list[str]:
    """A note if the main thread was ready but not running for much of the captured steps; else none."""
    begin, end = scene.trace.window_ns
    share = (scene.trace.facts.queued_ns or 0) / max(1, end - begin)
    steps = "step" if scene.trace.steps == 1 else f"{scene.trace.steps} steps"
    result = (
        "the samples come in bursts then, and the time of a line may be off by a tenth of the step and more"
        if sampled
        else "that time is at the lines that were interrupted"
    )
    told = f"other processes kept the script from running for {units.percent(share)} of the captured {steps}"
    return [f"{told}: {result}"] * (share > (CROWDED if sampled else UNSEEN))


def _stalled(scene: Scene, accounted: Account) -> list[str]:
    """A note if what the host divides among threads waits for cores, by its copies or by the threads in the
    timing window; else none."""
    spent = float(stalled_ns(scene.trace).sum()) * accounted.host_scale
    cores = scene.trace.facts.cores
    queued = (cores.helper_queued_ns or 0) / max(1, cores.window_ns or 0)
    if spent > UNSEEN * accounted.step_ms:
        return [
            f"copies in the host's memory take {units.ms(spent)} a step more than memory needs: torch's "
            "threads wait for a core, as where other processes have them, or for a disk; loading, and other "
            "work of the host, would be quicker alone"
        ]
    if scene.trace.on_gpu and queued > UNSEEN:
        return [
            f"a thread of the script waited for a core for {units.percent(queued)} of the timed steps, as "
            "where other processes have them: what the host divides among threads, such as loading, would be "
            "quicker alone"
        ]
    return []


def _rare_work(scene: Scene, share: float) -> str:
    """The likely cause of long steps, which take ``share`` of the timed ones: a collection of all garbage, a
    loader whose workers all deliver a batch at once, or an evaluation."""
    collected = sum(scene.trace.facts.gc_full_timed_ns or ())
    if collected > share * sum(scene.trace.manifest.timed_ns) / 2:
        return f"Python collected all garbage, which took {units.ms(collected / 1e6)}"
    loaders = [site.facts for site in scene.trace.facts.sites if site.kind == "loader"]
    workers = any(loader.get("num_workers") for loader in loaders)
    rare = "waiting for a loader's workers" if workers else "an evaluation"
    return f"possible reasons: {rare}, or a busy machine"


def begun_loaders(manifest: Manifest, facts: Facts) -> list[str]:
    """A note if much of what the step time leaves out may be beginnings of loaders' epochs; else none."""
    loaders = [facts_of(Loader, site) for site in facts.sites if site.kind == Loader.KIND]
    began = [one.starts_timed or 0 for one in loaders]
    others, timed = manifest.others_share, manifest.timed_ns
    if not timed or not any(began) or not UNSEEN < others < 1:
        return []
    spent_ns = sum(times * 1e6 * (one.start_ms or 0.0) for times, one in zip(began, loaders, strict=True))
    share = min(others, spent_ns * (1 - others) / (median(timed) * (len(timed) + max(began))))
    return [
        f"up to {units.percent(share)} of that time were the beginnings of loaders' epochs ({sum(began)}), "
        "until their first batches came"
    ] * (share > UNSEEN)


def _silent_threads(scene: Scene) -> int:
    """Number of threads with line records in the window but without ops, where torch recorded one thread's
    (an older one, or if the others began later)."""
    trace = scene.trace
    at_work = np.unique(trace.records.thread[scene.begun(trace.records.time_ns)])
    others = np.setdiff1d(at_work, [trace.main])
    silent = np.setdiff1d(others, trace.host.thread)
    return len(silent) if len(silent) == len(others) else 0


def _without_kernels(kind: str) -> list[str]:
    """A note if torch's profiler records no kernels on this kind of device; else none."""
    if can(kind, "line costs"):
        return []
    return [
        f"torch's profiler records no kernels on this device ({kind}): the step's time is measured, but "
        "lines have only host time, and no rules ran"
    ]
