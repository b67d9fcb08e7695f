"""A folder that scripts are profiled in: its settings, and a session for the newest run of each script."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from warpline.lsp.state import results
from warpline.lsp.state.changes import Changes
from warpline.lsp.state.documents import Documents
from warpline.lsp.state.results import Results, load, stamp
from warpline.lsp.state.session import Session
from warpline.lsp.state.settings import Settings
from warpline.model.problem import Problem

logger = logging.getLogger(__name__)

#: The most scripts with a loaded run; those profiled longest ago are dropped.
SCRIPTS = 8


class Folder:
    """``sessions``: one for each script, the newest run first. A run that cannot be read is passed over."""

    def __init__(self, path: Path, documents: Documents, changes: Changes) -> None:
        self.path = path
        self.runs = path / ".warpline" / "runs"
        self.documents = documents
        self.changes = changes  # told whenever other results are shown
        self.settings = Settings()
        self.project: int | None = None  # ``project_stamp`` when the settings were read
        self.sessions: list[Session] = []
        #: A run that the user opened, and the newest one then: it is shown until there is a newer one.
        self._opened: tuple[Path, Path] | None = None
        self._refused: dict[Path, tuple[int, ...]] = {}  # as they were when they could not be read
        self._scripts: dict[Path, str] = {}  # the script of each run
        self._lock = asyncio.Lock()

    @property
    def newest(self) -> Session | None:
        """The session that is shown where none is asked for: of the run made, or opened, last."""
        return self.sessions[0] if self.sessions else None

    def session(self, path: str) -> Session | None:
        """The session that has results for a file; of several the first, of a library's file as well."""
        own = next((session for session in self.sessions if session.results.has(path)), None)
        if own is not None:
            return own
        return next((session for session in self.sessions if session.results.libraries.has(path)), None)

    def files(self) -> list[str]:
        """All files with results, of whichever script."""
        return sorted({file for session in self.sessions for file in session.results.files()})

    async def refresh(self) -> bool:
        """Look for newer runs; True when what is shown changed."""
        async with self._lock:
            found = await asyncio.to_thread(results.complete, self.runs)
            usable = [run for run in found if self._refused.get(run) != stamp(run)]
            before = list(self.sessions)
            known = {session.results.run: session for session in before}
            wanted: list[Session] = []
            scripts: set[str] = set()
            for run in self._order(usable):
                if len(wanted) == SCRIPTS:
                    break
                try:
                    if run not in self._scripts:
                        self._scripts[run] = await asyncio.to_thread(results.script, run)
                    script = self._scripts[run]
                    if script in scripts:
                        continue
                    session = known.get(run)
                    if session is None or session.results.stamp != stamp(run):
                        earlier = [other for other in usable if other.name < run.name]
                        session = Session(self.path, await self._load(run, earlier), self.documents)
                        session.tell_by_cells()
                except Problem as problem:
                    logger.warning("%s", problem)
                    self.refuse(run)
                    continue
                scripts.add(script)
                wanted.append(session)
            if not wanted and before and before[0].results.run.exists():
                return False  # the last good results stay
            self.sessions = wanted
            if wanted == before:
                return False
            self._forget()
            self.changes.results(self.path)
            return True

    async def open(self, run: Path) -> bool:
        """Show this run instead of a newer one of its script, until there is a newer one still."""
        found = await asyncio.to_thread(results.complete, self.runs)
        self._opened = (run, found[0]) if run in found and run != found[0] else None
        return await self.refresh()

    def adopt(self, path: str) -> bool:
        """Whether an open file is one of a run's under another name; then it is that one."""
        document = self.documents.at(path)
        if document is None or any(path in session.results.sources for session in self.sessions):
            return False
        adopted = any(session.adopt(document) for session in self.sessions)
        if adopted:
            self.changes.results(self.path)
        return adopted

    def tell_by_cells(self, notebook: str) -> bool:
        """Whether one of the runs is of this notebook, which was opened or closed."""
        told = [session.tell_by_cells(notebook) for session in self.sessions]  # all, not up to the first
        if any(told):
            self.changes.results(self.path)
        return any(told)

    def unreported(self) -> Path | None:
        """A newer run that lies there complete, but without its report."""
        run = results.unreported(self.runs)
        return None if run is None or self._refused.get(run) == stamp(run) else run

    def refuse(self, run: Path) -> None:
        """Skip this run until its report is written again."""
        self._refused[run] = stamp(run)

    def stamp(self) -> tuple[int, ...]:
        """Changes when a run came, went or got its report: a ``stat`` call for each run that is shown."""
        return results.changed(self.runs), *(results.changed(one.results.run) for one in self.sessions)

    def project_stamp(self) -> int:
        """Changes when the folder's pyproject.toml was written."""
        return results.changed(self.path / "pyproject.toml")

    def _order(self, usable: list[Path]) -> list[Path]:
        if self._opened is None:
            return usable
        run, newest = self._opened
        if run not in usable or usable[0] != newest:
            self._opened = None
            return usable
        return [run, *(other for other in usable if other != run)]

    async def _load(self, run: Path, earlier: list[Path]) -> Results:
        return await asyncio.to_thread(load, run, earlier)

    def _forget(self) -> None:
        """Anchors of runs that are no longer shown."""
        shown = {str(session.results.run) for session in self.sessions}
        for document in self.documents:
            for name in [name for name in document.anchors if Path(name).parent == self.runs]:
                if name not in shown:
                    del document.anchors[name]
