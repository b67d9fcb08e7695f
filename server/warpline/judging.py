"""A run to its report: read, attribute, judge, and try what can be tried. ``pipeline`` says when."""

from __future__ import annotations

import contextlib
import math
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from warpline import project, runs
from warpline.devices import can
from warpline.model.problem import Problem
from warpline.model.profile import Profile
from warpline.model.ranks import LateLine
from warpline.model.report import Report
from warpline.wire import stages
from warpline.wire.messages import Progress
from warpline.wire.probing import PROBED, Probed, Question
from warpline.wire.run import Request

if TYPE_CHECKING:
    from warpline.attribution import Located
    from warpline.probing import Answers
    from warpline.simulate import Places
    from warpline.trace import Ahead, Trace

REPORT = "report.json"
PROFILE = "profile.json"

T = TypeVar("T")


class Read(NamedTuple):
    """A run, read and attributed."""

    profile: Profile
    trace: Trace
    places: Places


class Judged(NamedTuple):
    read: Read
    report: Report
    questions: tuple[Question, ...]  # that would tell more of what the fixes gain

    @property
    def profile(self) -> Profile:
        """The costs that the report is made of."""
        return self.read.profile


def read(
    run: Path,
    on_progress: Callable[[Progress], None] | None,
    recorded: Trace | None = None,
    ahead: Ahead | None = None,
) -> Read:
    """``recorded``: what ``run`` holds, where it was just made of that. ``ahead``: what was read of it while
    the script ran."""
    from warpline import trace
    from warpline.attribution import attribute, locate

    def tell(done: int, message: str) -> None:
        if on_progress is not None:
            on_progress(Progress(stages.READING, done, 3, message))

    tell(0, "reading the trace")
    events = recorded if recorded is not None else trace.read(run, ahead=ahead)
    tell(1, "attributing time to lines")
    located = locate(events)
    attributed = attribute(events, located)
    inside = tuple(kernel for kernel in runs.kernels(run) if kernel.holds_for(attributed.sources.get))
    tell(2, "applying the rules")
    late_line = _late_line(run, attributed, events)
    return Read(replace(attributed, inside=inside, late_line=late_line), events, places(located))


def _late_line(run: Path, attributed: Profile, events: Trace) -> LateLine | None:
    if "late_rank" not in attributed.totals:
        return None
    from warpline import ranks

    totals = attributed.totals
    try:
        own = ranks.table_from(run, events, attributed)
    except Exception:  # noqa: BLE001  # an odd trace costs the line, as in table_of, and not the report
        return None
    found = ranks.line_of(int(totals["late_rank"]), totals["late_rank_ms"], run, own)
    return found if found is not None and found.file in attributed.sources else None


def judge(run: Path, read: Read) -> Judged:
    """The report of what was read, kept beside the run."""
    from warpline import diagnosis
    from warpline.simulate import Predictor

    attributed = read.profile
    settings = project.settings(Path(attributed.manifest.script).parent)
    # The report refers to the run's lines; a fix is made again on the text as it is when it is asked for.
    predictor = Predictor(lambda: (read.trace, read.places), answers(run))
    diagnosed = diagnosis.diagnose(
        attributed,
        attributed.sources.get,
        settings.ignore,
        predict=predictor,
        compiling_s=predictor.compiling_s,
        not_compiling=predictor.not_compiling,
        undecided=predictor.undecided,
    )
    report = diagnosis.report(attributed, diagnosed, diagnosis.plan(attributed, diagnosed, predictor))
    keep(run, attributed, report)
    tried = can(attributed.manifest.device.kind, "replacements")
    return Judged(read, report, predictor.questions if tried else ())


def answers(run: Path) -> Answers:
    """What was tried when the run was made; nothing where that cannot be read, or was not."""
    from warpline.probing import by_question

    found = kept(run, PROBED, Probed)
    return by_question(found) if found is not None else {}


def try_replacements(
    run: Path,
    before: Judged,
    request: Request,
    on_progress: Callable[[Progress], None] | None,
    cancelled: threading.Event | None,
    until: float = math.inf,
) -> None:
    """Try the replacements (at most until then, of ``time.monotonic()``), keep the answers in the run, and
    make its report again."""
    from warpline.capture import probing

    def tell(done: int, total: int) -> None:
        if on_progress is not None:
            on_progress(Progress(stages.READING, done, total, f"trying replacements {done}/{total}"))

    tell(0, len(before.questions))
    facts, device = before.profile.facts, before.profile.manifest.device
    found = probing.probe(
        request,
        before.questions,
        request.probe_s,
        device=device.kind,
        threads=facts.flags.threads,
        cancelled=cancelled,
        on_answer=tell,
        until=until,
    )
    with contextlib.suppress(Problem):  # of a disk that is full: the predictions are simulated then
        runs.write_json(run, PROBED, found)
        judge(run, before.read)


def keep(run: Path, profile: Profile, report: Report) -> None:
    """Leave both beside the run. A run in a folder that cannot be written is made again each time."""
    try:
        runs.write_json(run, PROFILE, replace(profile, sources={}))
        runs.write_json(run, REPORT, report)
    except Problem as problem:
        print(f"warpline: the report was not saved: {problem}", file=sys.stderr)


def kept(run: Path, name: str, kind: type[T]) -> T | None:
    """A part of the run that a later stage wrote. None where it is missing or cannot be read. Raises Problem
    for a folder that is no run."""
    if not (run / name).is_file():
        return None
    runs.manifest(run)  # a folder that is not a run any more is a Problem, whatever else lies in it
    try:
        return runs.read(run, name, kind)
    except Problem:
        return None


def places(located: Located) -> Places:
    """The line of each host event and operator, in the form that ``simulate`` needs."""
    from warpline.simulate import Places

    table = located.table
    lines = list(zip(table.file, table.line, strict=True))
    return Places(located.placed.line, table.of_location, lines, located.placed.around, located.changes)
