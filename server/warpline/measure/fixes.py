"""Measures a finding's fix and stores the result with its run."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path

from warpline.measure import store, timed
from warpline.measure.contest import OnProgress, Outcome, measure
from warpline.measure.pairs import Limits
from warpline.measure.proposals import Workbench
from warpline.measure.timed import Timer
from warpline.model.problem import Problem
from warpline.model.profile import Profile
from warpline.model.report import Finding
from warpline.wire.run import Request


def measure_fix(
    run: Path,
    bench: Workbench,
    finding: Finding,
    request: Request | None = None,
    *,
    limits: Limits | None = None,
    timer: Timer | None = None,
    on_progress: OnProgress | None = None,
    cancelled: threading.Event | None = None,
) -> Outcome:
    """Measure the first fix of ``finding`` that has an edit, on the present texts in ``bench.texts``.

    ``request``: how to run the script; None: as it was profiled. Raises Problem if the finding has no such
    fix (2), if the plain script cannot be timed (1), or on cancel (130).
    """
    proposals = bench.proposals([finding])
    candidate = bench.candidate(proposals) if proposals else None
    if candidate is None:
        raise Problem(f"{finding.rule}: it has no edit to measure, or its line changed")
    outcome = measure(
        request or bench.profile.manifest.request,
        candidate,
        limits,
        timer=timer or timed.processes(bench.profile),
        on_progress=on_progress,
        cancelled=cancelled,
    )
    store.add(run, store.entry(outcome, finding, bench.texts))
    return outcome


def workbench(profile: Profile, unsaved: Mapping[str, str] | None = None) -> Workbench:
    """A workbench on the files on disk, except for ``unsaved`` texts (an editor's buffers).

    The plain script uses the unsaved texts too, so that both scripts run what the user sees.
    """
    from warpline.syntax.files import text_of

    buffers = dict(unsaved or {})

    def texts(path: str) -> str | None:
        return buffers[path] if path in buffers else text_of(path)

    base = {path: text for path, text in buffers.items() if path in profile.sources and text != text_of(path)}
    return Workbench(profile, texts, base=base)
