"""The sessions: one for each workspace folder, and for folders of files that are in none."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warpline.lsp.documents import Documents
from warpline.lsp.engine import Engine

if TYPE_CHECKING:
    from warpline.lsp.session import Session


@dataclass(slots=True)
class Running:
    """A profile (or measurement) under way; cancelling ``task`` ends it and all its processes."""

    uri: str
    engine: Engine
    task: asyncio.Task[Any]
    token: int | str | None = None
    ending: bool = False

    def end(self) -> bool:
        """Cancel it, once; False when that was done before."""
        if self.ending:
            return False
        self.ending = True
        return self.task.cancel()


class Folders:
    """Sessions by folder. ``running``: the profile under way in a folder, one at most."""

    def __init__(self, documents: Documents) -> None:
        self.documents = documents
        self.workspace: list[Path] = []
        self.running: dict[Path, Running] = {}
        self._sessions: dict[Path, Session] = {}

    def __iter__(self) -> Iterator[Session]:
        return iter(tuple(self._sessions.values()))

    def add(self, folder: Path) -> Session:
        from warpline.lsp.session import Session  # with all that results need: not at the start

        if folder not in self._sessions:
            self._sessions[folder] = Session(folder, self.documents)
        return self._sessions[folder]

    def remove(self, folder: Path) -> None:
        self._sessions.pop(folder, None)

    def home(self, path: str) -> Path:
        """The folder that a file is profiled in: the innermost workspace folder around it, else its own."""
        around = [folder for folder in self.workspace if Path(path).is_relative_to(folder)]
        return max(around, key=lambda folder: len(folder.parts), default=Path(path).parent)

    def around(self, path: str) -> list[Path]:
        """The folders in which a run of a file may lie: its own, and those above it up to its home."""
        home, found = self.home(path), []
        for folder in Path(path).parents:
            found.append(folder)
            if folder == home:
                return found
        return [home]

    def session(self, path: str) -> Session | None:
        """The session whose results speak of a file; of several the one with the newest run."""
        found = [session for session in self if session.results is not None and session.results.has(path)]
        return max(
            found, key=lambda session: session.results.created_ns if session.results else 0, default=None
        )

    def newest(self, path: str | None) -> Session | None:
        """The session with results for the folder of ``path``, or the newest of all."""
        if path is not None:
            found = self.session(path) or self._sessions.get(self.home(path))
            return found if found is not None and found.results is not None else None
        return max(
            (session for session in self if session.results is not None),
            key=lambda session: session.results.created_ns if session.results else 0,
            default=None,
        )

    def kill(self) -> None:
        for running in tuple(self.running.values()):
            running.engine.kill()
