"""From a request to a report: the only module that knows all stages.

The results of a run are stored in its folder: ``report.json`` (the contract's report) and ``profile.json``
(the Profile, without the sources, which the run already has). Both are computed again if they are missing or
unreadable.
"""

from __future__ import annotations

import contextlib
import math
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from warpline import judging, keeping, project, runs
from warpline.model import units
from warpline.model.kernel import KernelInside
from warpline.model.problem import Problem
from warpline.model.profile import Profile
from warpline.model.ranks import Rank
from warpline.model.report import FORMAT, Line, Report
from warpline.wire.messages import Progress
from warpline.wire.run import Request

if TYPE_CHECKING:
    from warpline.attribution.scene import Scene
    from warpline.model.tracks import Timeline
    from warpline.simulate import Places, Predictor
    from warpline.trace import Ahead, Trace
    from warpline.trace.ranges import Pool


#: Trying replacements takes at most this share of the time that is left, where there is an end: what the
#: caller measures then says more than a better prediction.
TRYING = 0.2
#: Each is another trace to read.
MOST_RANKS_IN_TIMELINE = 15


def profile(
    request: Request,
    *,
    folder: Path | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    cancelled: threading.Event | None = None,
    on_report: Callable[[Path, Report], None] | None = None,
    stdin: int | None = None,
    interrupted_s: float | None = None,
    ends: float = math.inf,
) -> tuple[Path, Report]:
    """Run the script, measure it, and say what its lines cost: (run folder, report).

    ``folder``: where the run folder is made (``.warpline/runs`` of the request's working folder).
    ``stdin`` is the descriptor that the script reads from (None: an empty input). ``interrupted_s``: how long
    the script may take to end once it is cancelled (None: a few seconds).
    ``on_report`` is called as soon as there is a report, while the script may still be ending.
    ``ends``: when the caller has to end (``time.monotonic()``), which needs time after the profile.
    Raises Problem with the exit status of the contract.
    """
    from warpline.capture.launch import capture

    made: list[Report] = []
    open_questions: list[judging.Judged] = []
    early = contextlib.ExitStack()
    ahead: list[Ahead] = []

    def pausing(path: Path, written: int) -> None:
        from warpline.trace import Ahead

        if not ahead:
            ahead.append(early.enter_context(Ahead()))
        ahead[0].heard(path, written)

    def ready(run: Path) -> None:
        judged = judging.judge(run, judging.read(run, on_progress, ahead=ahead[0] if ahead else None))
        made.append(report_of(run))
        if judged.questions and request.probe_s > 0:
            open_questions.append(judged)
        elif on_report is not None:
            on_report(run, made[0])

    where = folder if folder is not None else runs.runs_folder(Path(request.cwd or Path.cwd()))
    # Long before the steps begin the target imports torch: our own imports are out of the way by then.
    _importing(_import_stages)
    new = runs.new_run(where)
    try:
        with early:
            run = capture(
                request,
                new,
                on_progress,
                cancelled,
                on_ready=ready,
                on_pause=pausing,
                stdin=stdin,
                interrupted_s=interrupted_s,
            )
        for judged in open_questions:
            # Only now are the device and the cores free.
            now = time.monotonic()
            until = now + TRYING * (ends - now)
            judging.try_replacements(run, judged, request, on_progress, cancelled, until)
            made[0] = report_of(run)
    except KeyboardInterrupt:
        if made or not runs.is_run(new):
            raise
        raise Problem(
            f"interrupted; what was measured until then is kept: warpline show {new}", 130
        ) from None
    finally:
        # Also when that is cancelled: the report is valid without it.
        if open_questions and on_report is not None:
            on_report(new, made[0])
    report = _with_late_notes(run, made[0]) if made else report_of(run)
    runs.pack(run)
    _prune(where)
    return run, report


def finished(run: Path, request: Request) -> Path:
    """Make the report of a run that ``profile`` did not capture; returns ``run``. Raises Problem."""
    judged = judging.judge(run, judging.read(run, None))
    if judged.questions and request.probe_s > 0:
        judging.try_replacements(run, judged, request, None, None)
    runs.pack(run)
    _prune(run.parent)
    return run


def _prune(folder: Path) -> None:
    """Remove old runs of a project. A folder that the user named for runs is the user's to tidy."""
    if folder.parent.name != ".warpline":
        return
    with contextlib.suppress(Problem):  # of settings that cannot be read: nothing is removed by guess
        keeping.prune(folder, project.settings(folder))


def _with_late_notes(run: Path, report: Report) -> Report:
    """The report with what became known after it was made: that the script failed while it ended."""
    late = tuple(note for note in runs.manifest(run).notes if note not in report.notes)
    if not late:
        return report
    report = replace(report, notes=(*report.notes, *late))
    runs.write_json(run, judging.REPORT, report)
    return report


def import_trace(
    path: Path,
    *,
    folder: Path | None = None,
    pool: Pool | None = None,
    meanwhile: Callable[[], object] = lambda: None,
) -> list[tuple[Path, Report]]:
    """Make runs of traces made elsewhere: one of a file, one of each trace in a log folder.

    ``folder``: where the runs are made. ``pool``: what may be reading ``path`` already. ``meanwhile``:
    imports what the caller needs next, while others read a large trace. One that cannot be read is one line
    on standard error, and costs the others nothing. Raises Problem when ``path`` holds no trace that can be
    read.
    """
    from warpline.trace import foreign
    from warpline.trace.ranges import Pool

    made: list[tuple[Path, Report]] = []
    unread: list[Problem] = []
    where = folder if folder is not None else runs.runs_folder(Path.cwd())
    files = foreign.traces(path)
    with contextlib.ExitStack() as ended:
        pool = pool or ended.enter_context(Pool())
        beside = pool.begin(files[0])
        if beside:
            _import_next()
            meanwhile()
        for file in files:
            run = runs.new_run(where)
            try:
                with foreign.importing(file, run, pool) as events:
                    if beside and len(events.locations.locations) > 1:  # else rules have no line to look at
                        _importing(_import_stages)
                    read = judging.read(run, None, events)
            except Problem as problem:
                unread.append(problem)
                continue
            judging.judge(run, read)
            made.append((run, report_of(run)))
            runs.pack(run)
    if not made:
        raise unread[0]
    for one in unread:
        print(f"warpline: {one}", file=sys.stderr)
    return made


def report_of(run: Path, *, on_progress: Callable[[Progress], None] | None = None) -> Report:
    """The report of a run: the kept one, or made now. Raises Problem when ``run`` is not a run.

    What was measured for its findings is in it as long as the code it refers to is unchanged.
    """
    from warpline.measure import calibration, store
    from warpline.syntax.files import text_of

    kept = judging.kept(run, judging.REPORT, Report)
    report = kept if kept is not None and kept.format == FORMAT else _make(run, on_progress)[1]
    findings = store.attach(run, report.findings, text_of)
    findings = calibration.bounded(findings, store.errors(run.parent), report.environment.device.kind)
    # Where something is predicted only, how far predictions were off belongs beside it.
    guessed = any(one.predicted is not None and one.measured is None for one in findings)
    notes = report.notes + (past_predictions(run.parent) if guessed else ()) + trend_notes(run, report.lines)
    return replace(report, findings=findings, notes=notes)


def trend_notes(run: Path, lines: Sequence[Line] = ()) -> tuple[str, ...]:
    """Notes on what was timed after the capture. Read each time, since a run that continues adds to it."""
    from warpline.trends import said

    trend = runs.trend(run)
    if trend is not None:
        return said.notes(trend, lines)
    if not runs.manifest(run).request.every:
        return ()
    return ("--every: no step has been timed after the capture",)


def past_predictions(folder: Path) -> tuple[str, ...]:
    """A note on how far earlier predictions in ``folder`` were off, if any was measured."""
    from warpline.measure import store

    past = store.prediction_error(folder)
    if past is None:
        return ()
    error, count = past
    return ((f"earlier predictions on this machine were off by {units.percent(error)} (median of {count})"),)


def profile_of(run: Path) -> Profile:
    """The profile of a run, with its sources: the kept one, or made now."""
    kept = judging.kept(run, judging.PROFILE, Profile)
    if kept is None:
        return _make(run, None)[0]
    return replace(kept, sources=runs.sources(run))


def timeline_of(run: Path) -> Timeline:
    """The captured steps as they were recorded, other ranks' below. Reads traces: seconds for a large one.

    Raises Problem when the run's own trace cannot be read; another rank's is left out.
    """
    from warpline import trace
    from warpline.attribution.rank_tracks import with_ranks
    from warpline.attribution.tracks import tracks

    own, others = tracks(trace.read(run)), {}
    for folder in runs.rank_folders(run)[:MOST_RANKS_IN_TIMELINE]:
        with contextlib.suppress(Problem):
            others[runs.manifest(folder).rank] = tracks(trace.read(folder))
    return with_ranks(own, others) if others else own


def ranks_of(run: Path) -> tuple[Rank, ...]:
    """The run and what its other ranks on this machine left, by number; one that cannot be read is left out.
    () for a run of one process."""
    found = []
    for folder in runs.rank_folders(run) and (run, *runs.rank_folders(run)):
        with contextlib.suppress(Problem):
            profile = profile_of(folder)
            found.append(Rank(profile.manifest.rank, report_of(folder), profile.totals))
    return tuple(sorted(found, key=lambda rank: rank.number))


def roofs_of(profile: Profile) -> dict[str, float]:
    """What the run's device can do at best: operations per second by kind of arithmetic, ``bytes_per_s``.
    Empty for a device that is not known.
    """
    from warpline.attribution.peaks import peaks_of

    found = peaks_of(profile.manifest.device.name, profile.facts)
    if found is None:
        return {}
    names = ("fp32", "tf32", "half", "fp64", "bytes_per_s")
    return {name: getattr(found, name) for name in names}


def look_inside(
    run: Path, file: Path, line: int, text: str, *, cancelled: threading.Event | None = None
) -> KernelInside:
    """Run the script under Nsight Compute; what it says of the kernel meant by ``file:line`` of ``text``.

    It is stored with the run, and the run's report is made again with it. Raises Problem.
    """
    from warpline import diagnosis
    from warpline.capture import nsight, nsight_module, probe
    from warpline.syntax.files import text_of
    from warpline.trace import nsight as answers

    profile = profile_of(run)
    name = diagnosis.kernel_at(profile, file, line, text)
    ncu = probe.nsight_compute()
    if ncu is None:
        raise Problem("Nsight Compute (ncu) is not installed; 'warpline doctor' shows how to get it")
    module = nsight_module.find(ncu)
    # As many launches as the run made for certain are there to be passed over.
    known = [kernel.count for cost in profile.lines for kernel in cost.kernels if name in kernel.name]
    made = sum(known) * (len(profile.manifest.captured) + len(profile.manifest.timed_ns))
    skip = min(nsight.MOST_SKIPPED, max(0, int(made) - 1)) if known else nsight.MOST_SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "kernel.ncu-rep")
        nsight.collect(profile.manifest.request, name, place, ncu, skip, cancelled)
        inside = answers.read(place, module).with_texts(text_of)
    runs.keep_kernel(run, inside)
    _make(run, None)
    return inside


def _importing(modules: Callable[[], object]) -> None:
    """Calls what imports modules, on a thread of its own."""
    threading.Thread(target=modules, name="warpline-imports", daemon=True).start()


def _import_stages() -> None:
    from warpline import attribution, diagnosis, simulate, trace  # noqa: F401
    from warpline.rules import rules

    rules()


def _import_next() -> None:
    """What every trace needs once it was read, in the order in which it is needed."""
    from warpline import attribution, diagnosis, simulate  # noqa: F401
    from warpline.measure import calibration, store  # noqa: F401


def _make(run: Path, on_progress: Callable[[Progress], None] | None) -> tuple[Profile, Report]:
    judged = judging.judge(run, judging.read(run, on_progress))
    return judged.profile, judged.report


def scene_of(run: Path) -> Scene:
    """The trace of a run with the line of each event in it, for what shows events."""
    from warpline import trace
    from warpline.attribution import locate
    from warpline.attribution.scene import scene

    events = trace.read(run)
    return scene(events, locate(events))


def predictor_of(run: Path) -> Predictor:
    """Foresees changes of a run; its trace is read when the first one is asked about."""
    from warpline.simulate import Predictor

    def read() -> tuple[Trace, Places]:
        from warpline import trace
        from warpline.attribution import locate

        events = trace.read(run)
        return events, judging.places(locate(events))

    return Predictor(read, judging.answers(run))
