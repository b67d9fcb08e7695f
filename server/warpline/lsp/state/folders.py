"""The folders: those of the workspace, and those of files that are in none."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warpline.lsp import convert
from warpline.lsp.state.changes import Changes
from warpline.lsp.state.documents import Documents
from warpline.lsp.worker.engine import Engine

if TYPE_CHECKING:
    from warpline.lsp.state.folder import Folder
    from warpline.lsp.state.session import Session


@dataclass(slots=True)
class Running:
    """A profile (or measurement) under way; cancelling ``task`` ends it and all its processes."""

    uri: str
    engine: Engine
    task: asyncio.Task[Any]
    doing: str
    token: int | str | None = None
    ending: bool = False

    def end(self) -> bool:
        """Cancel it, once; False when that was done before."""
        if self.ending:
            return False
        self.ending = True
        return self.task.cancel()


class Folders:
    """``running``: the profile under way in a folder, one at most."""

    def __init__(self, documents: Documents) -> None:
        self.documents = documents
        self.changes = Changes()
        self.workspace: list[Path] = []
        self.running: dict[Path, Running] = {}
        self._folders: dict[Path, Folder] = {}

    def __iter__(self) -> Iterator[Folder]:
        return iter(tuple(self._folders.values()))

    def add(self, path: Path) -> Folder:
        """The folder at a path, with its results, made if need be."""
        from warpline.lsp.state.folder import Folder  # with all that results need: not at the start

        if path not in self._folders:
            self._folders[path] = Folder(path, self.documents, self.changes)
        return self._folders[path]

    def get(self, path: Path) -> Folder | None:
        """The folder at exactly this path, if it is one of ours."""
        return self._folders.get(path)

    def remove(self, folder: Path) -> None:
        """Its results are no longer shown, also in files that stay open."""
        if self._folders.pop(folder, None) is not None:
            self.changes.shown()

    async def look(self) -> None:
        """Look for newer runs in all folders."""
        with self.changes.together():
            for folder in self:
                await folder.refresh()

    def started(self, folder: Path, running: Running) -> None:
        """A script runs in a folder in which nothing else does."""
        self.running[folder] = running
        self.changes.running()

    def ended(self, folder: Path) -> None:
        """What ran in a folder has ended."""
        self.running.pop(folder, None)
        self.changes.running()

    def home(self, path: str) -> Path:
        """The folder that a file is profiled in: the innermost workspace folder around it, else its own."""
        file = Path(convert.on_disk(path))
        around = [folder for folder in self.workspace if file.is_relative_to(folder)]
        return max(around, key=lambda folder: len(folder.parts), default=file.parent)

    def around(self, path: str) -> list[Path]:
        """The folders in which a run of a file may lie: its own, and those above it up to its home."""
        home, found = self.home(path), []
        for folder in Path(convert.on_disk(path)).parents:
            found.append(folder)
            if folder == home:
                return found
        return [home]

    def session(self, path: str) -> Session | None:
        """The session with results for a file; among several folders the one with the newest run, and
        one in which it is a library's file only where there is no other."""
        found = [session for folder in self if (session := folder.session(path)) is not None]
        return _latest([session for session in found if session.results.has(path)] or found)

    def newest(self, path: str | None) -> Session | None:
        """The session with results for a file, else the newest of its folder; of all for None."""
        if path is None:
            return _latest(folder.newest for folder in self)
        home = self._folders.get(self.home(path))
        return self.session(path) or (home.newest if home is not None else None)

    def files(self) -> list[str]:
        """All files with results."""
        return sorted({file for folder in self for file in folder.files()})

    def kill(self) -> None:
        """End every process that runs, at once."""
        for running in tuple(self.running.values()):
            running.engine.kill()


def _latest(sessions: Iterable[Session | None]) -> Session | None:
    found = [session for session in sessions if session is not None]
    return max(found, key=lambda session: session.results.created_ns, default=None)
