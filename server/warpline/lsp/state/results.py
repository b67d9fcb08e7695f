"""One finished run as the server keeps it, and finding the newest."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from warpline import runs
from warpline.lsp.state.before import REPORT, Before, before, read_report
from warpline.lsp.state.libraries import Libraries
from warpline.model.problem import Problem
from warpline.model.report import Finding, Report
from warpline.view import change
from warpline.view.anchor_lines import Costs, costs_by_line
from warpline.view.lenses import Lens, functions, of_file, of_functions, totals_of
from warpline.wire.run import Request

MEASURED = "measured.json"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a measurement of a fix came to. ``kept``: the gain is proven and nothing contradicts it."""

    kept: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Results:
    run: Path
    created_ns: int
    report: Report
    sources: Mapping[str, str]  # path -> text in the run
    costs: Mapping[str, Costs]  # path -> 1-based line of the run -> costs
    findings: Mapping[str, tuple[Finding, ...]]  # path of the edit site -> findings
    loader_ms: Mapping[tuple[str, int], float]  # waiting for data, by line of the run
    inside: Mapping[tuple[str, int], str]  # what Nsight Compute said, by line of the run
    stamp: tuple[int, ...]
    request: Request = field(default_factory=Request)
    noise: float | None = None  # of the steps, see view/change.py
    before: Before | None = None
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)  # finding -> what its measurement says
    names: Mapping[str, str] = field(default_factory=dict)  # of a notebook's cells: URI -> "Cell 3"
    #: (file, qualified function) -> its time with the functions that it calls; empty: not known.
    totals: Mapping[tuple[str, str], float] = field(default_factory=dict)
    #: For a notebook's run, shown by cells: (script, line) -> (URI of the cell, line).
    cells: Mapping[tuple[str, int], tuple[str, int]] = field(default_factory=dict)
    _lenses: dict[str, tuple[str, tuple[Lens, ...]]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    libraries: Libraries = field(default_factory=lambda: Libraries((), {}))

    @property
    def step_ms(self) -> float:
        """The step time in milliseconds, measured without the profiler."""
        return self.report.steps.step_ms

    def has(self, path: str) -> bool:
        """Whether a file has costs or findings."""
        return path in self.costs or path in self.findings

    def costs_in(self, path: str) -> Costs:
        """What the lines of a file cost, of the user's or a library's; by 1-based line of the run."""
        return self.costs[path] if path in self.costs else self.libraries.costs(path)

    def text_of(self, path: str) -> str | None:
        """The text that ``costs_in`` refers to; None for a file without results."""
        if path in self.sources:
            return self.sources[path]
        return self.libraries.text(path) if self.libraries.has(path) else None

    def files(self) -> tuple[str, ...]:
        """Every file with costs or findings, sorted."""
        return tuple(sorted({*self.costs, *self.findings}))

    def lenses(self, path: str) -> tuple[str, tuple[Lens, ...]]:
        """What is over a file, and over its functions. Made once: every keystroke asks for them again."""
        if path not in self._lenses:
            self._lenses[path] = self._lenses_of(path)
        return self._lenses[path]

    def _lenses_of(self, path: str) -> tuple[str, tuple[Lens, ...]]:
        lines = [cost for costs in self.costs_in(path).values() for cost in costs]
        whole = sum(line.step_ms for line in lines)
        then, functions_then, noise = None, None, None
        if self.before is not None:
            then, noise = self.before.step_ms, self.before.noise
            functions_then = {name: ms for (file, name), ms in self.before.functions.items() if file == path}
        with_called = {name: ms for (file, name), ms in self.totals.items() if file == path}
        found = functions(lines, self.text_of(path) or "", with_called)
        return (
            of_file(whole, self.step_ms, then, noise, "cell" if path in self.names else "file"),
            tuple(of_functions(found, self.step_ms, functions_then, noise)),
        )


class _Wait(msgspec.Struct):
    file: str
    line: int
    loader_ms: float = 0.0


class _Waits(msgspec.Struct):
    """The little of profile.json that the contract's report leaves out and a hover shows."""

    lines: list[_Wait] = msgspec.field(default_factory=list)


def complete(folder: Path) -> list[Path]:
    """Runs with a report in ``folder``, the newest first."""
    return [run for run in _runs(folder) if (run / REPORT).is_file()]


def script(run: Path) -> str:
    """The script that a run is of. Raises Problem."""
    return runs.manifest(run).script


def changed(path: Path) -> int:
    """When a file or folder was last written, in ns; 0 when it is not there."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def unreported(folder: Path) -> Path | None:
    """The newest run when it is complete but has no report yet."""
    newest = next(iter(_runs(folder)), None)
    return newest if newest is not None and not (newest / REPORT).exists() else None


def renamed(results: Results, old: str, new: str) -> Results:
    """The same results for a file that has another name now."""

    def name(file: str) -> str:
        return new if file == old else file

    lines = tuple(replace(line, file=name(line.file)) for line in results.report.lines)
    findings = tuple(
        replace(
            finding,
            file=name(finding.file),
            cause=replace(finding.cause, file=name(finding.cause.file)),
            also=tuple(replace(one, file=name(one.file)) for one in finding.also),
            fixes=tuple(
                replace(fix, edits=tuple(replace(edit, file=name(edit.file)) for edit in fix.edits))
                for fix in finding.fixes
            ),
        )
        for finding in results.report.findings
    )
    earlier = results.before
    if earlier is not None:
        functions = {(name(file), function): ms for (file, function), ms in earlier.functions.items()}
        earlier = replace(earlier, functions=functions)
    return replace(
        results,
        report=replace(results.report, lines=lines, findings=findings),
        sources={name(file): text for file, text in results.sources.items()},
        costs=costs_by_line(lines),
        findings=by_file(findings),
        loader_ms={(name(file), line): ms for (file, line), ms in results.loader_ms.items()},
        inside={(name(file), line): words for (file, line), words in results.inside.items()},
        before=earlier,
        totals={(name(file), function): ms for (file, function), ms in results.totals.items()},
        libraries=Libraries(lines, results.sources),
    )


def by_file(findings: Iterable[Finding]) -> dict[str, tuple[Finding, ...]]:
    """Path of the edit site -> its findings."""
    files: dict[str, tuple[Finding, ...]] = {}
    for finding in findings:
        files[finding.file] = (*files.get(finding.file, ()), finding)
    return files


def stamp(run: Path) -> tuple[int, ...]:
    """Changes when the run's report or a measurement of its fixes was written again."""
    found = []
    for name in (REPORT, MEASURED):
        try:
            found.append((run / name).stat().st_mtime_ns)
        except OSError:
            found.append(0)
    return tuple(found)


def load(run: Path, others: list[Path]) -> Results:
    """Reads a run. ``others``: older ones, among which the one before is looked for.

    Raises Problem for a run that is malformed or of another format.
    """
    with _collector_paused():
        return _load(run, others)


def _load(run: Path, others: list[Path]) -> Results:
    manifest = runs.manifest(run)
    seen = stamp(run)
    report = read_report(run)
    verdicts: dict[str, Verdict] = {}
    if (run / MEASURED).is_file():
        from warpline.measure import store  # not at start-up: few runs were measured

        report = replace(report, findings=store.attach(run, report.findings, _text))
        verdicts = {name: Verdict(one.kept, one.reason) for name, one in store.fresh(run, _text).items()}
    sources = runs.sources(run)
    return Results(
        run=run,
        created_ns=manifest.created_ns,
        report=report,
        sources=sources,
        costs=costs_by_line(report.lines),
        findings=by_file(report.findings),
        loader_ms=_waits(run),
        inside=_inside(run, sources),
        stamp=seen,
        request=manifest.request,
        noise=change.noise(manifest.timed_ns),
        before=before(report, manifest.request.launcher, change.noise(manifest.timed_ns), others),
        verdicts=verdicts,
        totals=totals_of(report.functions),
        libraries=Libraries(report.lines, sources),
    )


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Tens of thousands of objects come, and stay: no collection walks them, now or later. What is garbage
    is taken out before they are there, since requests are answered meanwhile."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def _text(path: str) -> str | None:
    try:
        return Path(path).read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return None


def _runs(folder: Path) -> list[Path]:
    try:
        names = sorted((entry.name for entry in os.scandir(folder) if entry.name[:1] != "."), reverse=True)
    except OSError:
        return []
    return [folder / name for name in names if runs.is_run(folder / name)]


def _inside(run: Path, sources: Mapping[str, str]) -> dict[tuple[str, int], str]:
    found: dict[tuple[str, int], str] = {}
    for kernel in runs.kernels(run):
        if kernel.holds_for(sources.get):
            from warpline.view.kernel import words_by_line  # not at start-up: few runs were looked into

            found |= words_by_line(kernel)
    return found


def _waits(run: Path) -> dict[tuple[str, int], float]:
    try:
        waits = runs.read(run, "profile.json", _Waits)
    except Problem:
        return {}
    found: dict[tuple[str, int], float] = {}
    for wait in waits.lines:
        if wait.loader_ms > 0:
            place = (wait.file, wait.line)
            found[place] = found.get(place, 0.0) + wait.loader_ms
    return found
