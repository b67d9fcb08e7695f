"""What the server knows of one folder: its newest run, and where that run's lines stand now."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from warpline.lsp.documents import Document, Documents
from warpline.lsp.results import Results, complete, load, renamed, stamp, unreported
from warpline.lsp.settings import Settings
from warpline.model.problem import Problem
from warpline.view.anchor import Anchor
from warpline.view.anchor_text import key, split

if TYPE_CHECKING:
    from warpline.lsp.standing import Stand

logger = logging.getLogger(__name__)

#: A file that is new has at least this part of its lines from one that is gone: it was renamed.
_ALIKE = 0.7

Stamp = tuple[int, int]


class Session:
    """``results`` is replaced as a whole, never changed. A run that cannot be read is passed over."""

    def __init__(self, folder: Path, documents: Documents) -> None:
        self.folder = folder
        self.runs = folder / ".warpline" / "runs"
        self.documents = documents
        self.settings = Settings()
        self.project: int | None = None  # ``project_stamp`` when the settings were read
        self.results: Results | None = None
        self._closed: dict[str, tuple[Stamp, list[str], Anchor]] = {}
        self.stands: dict[str, Stand] = {}  # kept by standing.py: path -> its findings as they stand
        self._refused: dict[Path, tuple[int, ...]] = {}  # as they were when they could not be read
        self._lock = asyncio.Lock()

    async def refresh(self) -> bool:
        """Look for a newer run; True when ``results`` changed."""
        async with self._lock:
            found = await asyncio.to_thread(complete, self.runs)
            usable = [run for run in found if self._refused.get(run) != stamp(run)]
            for n, run in enumerate(usable):
                if self.results is not None and run == self.results.run and stamp(run) == self.results.stamp:
                    return False
                try:
                    self.results = await asyncio.to_thread(load, run, usable[n + 1 :])
                except Problem as problem:
                    logger.warning("%s", problem)
                    self.refuse(run)
                    continue
                self._forget()
                return True
            if not usable and self.results is not None and not self.results.run.exists():
                self.results = None
                self._forget()
                return True
            return False

    def adopt(self, document: Document) -> bool:
        """Whether a file that is opened is one of the run's under another name; then it is that one."""
        results, path = self.results, document.path
        if results is None or path is None or path in results.sources:
            return False
        now = {key(line) for line in document.lines}
        for file in results.files():
            then = {key(line) for line in split(results.sources.get(file, ""))}
            if not Path(file).exists() and len(now & then) >= _ALIKE * max(len(now), len(then)):
                self.results = renamed(results, file, path)
                self._forget()
                return True
        return False

    def unreported(self) -> Path | None:
        """A newer run that lies there complete, but without its report."""
        run = unreported(self.runs)
        return None if run is None or self._refused.get(run) == stamp(run) else run

    def refuse(self, run: Path) -> None:
        """Do not look at this run again until somebody writes its report anew."""
        self._refused[run] = stamp(run)

    def stamp(self) -> tuple[int, int]:
        """Changes when a run came, went or got its report: two ``stat`` calls."""
        newest = self.results.run if self.results is not None else self.runs
        return changed(self.runs), changed(newest)

    def project_stamp(self) -> int:
        """Changes when the folder's pyproject.toml was written."""
        return changed(self.folder / "pyproject.toml")

    def anchor(self, path: str) -> Anchor | None:
        """Where the run's lines of a file stand now, in the editor's text or else in the file's."""
        results = self.results
        if results is None or path not in results.sources:
            return None
        document = self.documents.at(path)
        if document is not None:
            return self._of_document(results, document, path)
        return self._of_file(results, path)[1]

    def lines(self, path: str) -> Sequence[str]:
        """The text now, line by line."""
        document = self.documents.at(path)
        if document is not None:
            return document.lines
        if self.results is None or path not in self.results.sources:
            return []
        return self._of_file(self.results, path)[0]

    def _of_document(self, results: Results, document: Document, path: str) -> Anchor:
        name = str(results.run)
        anchor = document.anchors.get(name)
        if anchor is None:
            anchor = document.anchors[name] = Anchor(results.sources[path], document.lines)
        return anchor

    def _of_file(self, results: Results, path: str) -> tuple[list[str], Anchor]:
        stamp = _stamp(path)
        known = self._closed.get(path)
        if known is None or known[0] != stamp:
            lines = split(_read(path))
            known = self._closed[path] = (stamp, lines, Anchor(results.sources[path], lines))
        return known[1], known[2]

    def _forget(self) -> None:
        self._closed.clear()
        self.stands.clear()
        current = str(self.results.run) if self.results is not None else ""
        for document in self.documents:
            for name in [name for name in document.anchors if Path(name).parent == self.runs]:
                if name != current:
                    del document.anchors[name]


def _read(path: str) -> str:
    try:
        return Path(path).read_bytes().decode("utf-8-sig", "replace")
    except OSError:
        return ""


def _stamp(path: str) -> Stamp:
    try:
        status = Path(path).stat()
    except OSError:
        return (0, -1)
    return status.st_mtime_ns, status.st_size


def changed(path: Path) -> int:
    """When a file or folder was last written, in ns; 0 when it is not there."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
