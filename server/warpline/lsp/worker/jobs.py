"""The jobs of a worker process. Each gets the message, a progress callback, an event that is set when
the job is to end, and a dictionary that lives as long as the worker; each returns plain JSON."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from warpline.model.problem import Problem
from warpline.model.profile import Profile
from warpline.model.report import Edit, Finding
from warpline.wire.run import Request

Job = dict[str, Any]
OnProgress = Callable[[str, int, "int | None", str], None]


def profile(job: Job, progress: OnProgress, cancelled: threading.Event, _: dict[str, Any]) -> Any:
    """``{"request": Request, "folder": where run folders go}`` -> ``{"run": path}``."""
    from warpline import pipeline

    run, _report = pipeline.profile(
        msgspec.convert(job["request"], Request),
        folder=Path(job["folder"]),
        on_progress=lambda at: progress(at.stage, at.done, at.total, at.message),
        cancelled=cancelled,
    )
    return {"run": str(run)}


def report(job: Job, _: OnProgress, __: threading.Event, ___: dict[str, Any]) -> Any:
    """``{"run": path}``: make the report of a run that has none yet."""
    from warpline import pipeline

    pipeline.report_of(Path(job["run"]))
    return {"run": job["run"]}


def fixes(job: Job, _: OnProgress, __: threading.Event, kept: dict[str, Any]) -> Any:
    """``{"run", "finding": Finding, "texts": {path: text}}`` -> the finding's fixes as the texts are now."""
    from warpline import diagnosis

    finding = msgspec.convert(job["finding"], Finding)
    return msgspec.to_builtins(diagnosis.fixes(_profile(job["run"], kept), finding, _texts(job)))


def together(job: Job, _: OnProgress, __: threading.Event, kept: dict[str, Any]) -> Any:
    """``{"run", "findings", "texts"}`` -> ``{"edits": […], "skipped": {finding id: reason}}``."""
    from warpline import diagnosis

    findings = msgspec.convert(job["findings"], tuple[Finding, ...])
    texts = _texts(job)
    made = diagnosis.together(_profile(job["run"], kept), findings, texts)
    edits = [edit for path, text in made.texts.items() for edit in difference(path, texts(path) or "", text)]
    return {
        "edits": msgspec.to_builtins(edits),
        "skipped": {skip.finding.id: skip.reason for skip in made.skipped},
    }


def page(job: Job, _: OnProgress, __: threading.Event, ___: dict[str, Any]) -> Any:
    """``{"rule"}`` -> its page in Markdown. Raises Problem."""
    from warpline.rules import names
    from warpline.rules import page as page_of

    if job["rule"] not in names():
        raise Problem(f"there is no rule {job['rule']}")
    return {"markdown": page_of(job["rule"]).markdown()}


def report_page(job: Job, _: OnProgress, __: threading.Event, ___: dict[str, Any]) -> Any:
    """``{"run", "cwd", "file"}``: write the page of a run to a file."""
    from warpline import runs
    from warpline.html.of_run import page_of

    text = page_of(Path(job["run"]), None, job["cwd"], lambda line: None)  # the page says what it lacks
    runs.write(Path(job["file"]), text.encode())
    return {}


def measure(job: Job, progress: OnProgress, cancelled: threading.Event, kept: dict[str, Any]) -> Any:
    """``{"run", "finding", "texts"}`` -> what the finding's fix gains, with the current texts. Raises Problem
    if it could not be measured."""
    from warpline.measure.fixes import measure_fix, workbench

    bench = workbench(_profile(job["run"], kept), job["texts"])
    outcome = measure_fix(
        Path(job["run"]),
        bench,
        msgspec.convert(job["finding"], Finding),
        on_progress=lambda done, total, message: progress("measuring", done, total, message),
        cancelled=cancelled,
    )
    if outcome.measured is None:
        raise Problem(f"the fix could not be measured: {outcome.reason}", 1)
    return {"measured": msgspec.to_builtins(outcome.measured), "kept": outcome.kept, "reason": outcome.reason}


def kernel(job: Job, progress: OnProgress, cancelled: threading.Event, kept: dict[str, Any]) -> Any:
    """``{"run", "file", "line" (from 1, of the run)}`` -> ``{"name", "summary"}`` of the kernel there."""
    from warpline import pipeline, runs
    from warpline.view.kernel import kernel_table

    progress("measuring", 0, None, "running the script under Nsight Compute")
    run, file = Path(job["run"]), job["file"]
    text = runs.sources(run).get(file, "")
    inside = pipeline.look_inside(run, Path(file), job["line"], text, cancelled=cancelled)
    kept.clear()  # the profile of that run holds it now
    return {"name": inside.name, "summary": "; ".join(filter(None, kernel_table(inside).summary))}


def difference(path: str, before: str, after: str) -> list[Edit]:
    """The edits that make one text of the other, line by line. Columns are 0, lines 1-based."""
    from warpline.text.edits import between

    return [Edit(path, *change) for change in between(before, after)]


def _texts(job: Job) -> Callable[[str], str | None]:
    from warpline.syntax.files import text_of

    texts: dict[str, str] = job["texts"]
    return lambda path: texts[path] if path in texts else text_of(path)


def _profile(run: str, kept: dict[str, Any]) -> Profile:
    """The profile of a run; only the last one is kept."""
    if kept.get("run") != run:
        from warpline import pipeline

        kept.update(run=run, profile=pipeline.profile_of(Path(run)))
        gc.freeze()  # it stays: no collection in the jobs to come walks it
    found: Profile = kept["profile"]
    return found


def tune(job: Job, progress: OnProgress, cancelled: threading.Event, kept: dict[str, Any]) -> Any:
    """See tune_job.py."""
    from warpline.lsp.worker import tune_job

    return tune_job.tune(job, progress, cancelled, kept)


JOBS = {
    "profile": profile,
    "report": report,
    "fixes": fixes,
    "together": together,
    "page": page,
    "report_page": report_page,
    "measure": measure,
    "kernel": kernel,
    "tune": tune,
}
