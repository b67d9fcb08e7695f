"""Notices runs made elsewhere and sources changed outside the editor, within a second.

On a local disk ``watchdog`` reports at once. Network file systems do not report what another machine wrote,
so these few folders are also checked once a second: two ``stat`` calls each.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warpline.lsp.methods import configuration
from warpline.lsp.state.folder import Folder
from warpline.lsp.worker.engine import Failed

if TYPE_CHECKING:
    from warpline.lsp.server import Server

logger = logging.getLogger(__name__)

_PERIOD_S = 1.0
#: A checkout writes many files, a capture many times: one look for all of it.
_SETTLE_S = 0.05
#: A terminal's own `warpline profile` writes the report a moment after the run is complete.
_REPORT_AFTER_S = 5.0
#: Folders with sources are watched up to this many; the others are seen when they are asked about.
_FOLDERS = 64


class Watch:
    def __init__(self, ls: Server) -> None:
        self._ls = ls
        self._poked = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._observer: Any = None
        self._watched: dict[str, Any] = {}
        self._stamps: dict[Path, tuple[int, ...]] = {}
        self._sources: dict[str, int] = {}
        self._since: dict[Path, float] = {}

    async def run(self) -> None:
        try:
            while True:
                await self._look()
                await asyncio.to_thread(self._follow)
                if await self._was_poked():
                    await asyncio.sleep(_SETTLE_S)
                self._poked.clear()
        finally:
            if self._observer is not None:
                self._observer.stop()

    async def _was_poked(self) -> bool:
        """Whether something changed within the period.

        Before Python 3.12, ``asyncio.wait_for`` loses a cancel that comes with the answer. The server's last
        one is not repeated, so the server would never end.
        """
        poked = asyncio.ensure_future(self._poked.wait())
        try:
            done, _ = await asyncio.wait({poked}, timeout=_PERIOD_S)
            return bool(done)
        finally:
            poked.cancel()

    async def _look(self) -> None:
        with self._ls.folders.changes.together():
            await self._look_at_runs()
            if self._projects_changed():
                await configuration.fetch(self._ls)
                self._ls.folders.changes.shown()
            if self._sources_changed():
                self._ls.folders.changes.shown()

    async def _look_at_runs(self) -> None:
        for folder in self._ls.folders:
            stamp = folder.stamp()
            if self._stamps.get(folder.path) == stamp:
                continue
            await folder.refresh()
            # Taken before the look: what came during it is seen the next time.
            self._stamps[folder.path] = stamp
            if (run := folder.unreported()) is not None:
                self._stamps.pop(folder.path)
                self._report_later(folder, run)

    def _projects_changed(self) -> bool:
        """Whether a folder's settings were written since they were read."""
        return any(folder.project not in (None, folder.project_stamp()) for folder in self._ls.folders)

    def _report_later(self, folder: Folder, run: Path) -> None:
        """Make the report of a run ourselves when the process that made the run does not."""
        now = self._loop.time()
        since = self._since.setdefault(run, now)
        if now - since >= _REPORT_AFTER_S:
            self._since[run] = float("inf")
            self._ls.start(self._report(folder, run))

    async def _report(self, folder: Folder, run: Path) -> None:
        try:
            await self._ls.desk.ask("report", run=str(run))
        except Failed as problem:
            folder.refuse(run)
            self._ls.log(f"{run}: {problem}")

    def _sources_changed(self) -> bool:
        """Whether a file with results, not open in the editor, was written since the last look."""
        before, self._sources = self._sources, {}
        for folder in self._ls.folders:
            for file in folder.files():
                if self._ls.documents.at(file) is None and Path(file).parent.as_posix() in self._watched:
                    with contextlib.suppress(OSError):
                        self._sources[file] = Path(file).stat().st_mtime_ns
        return any(file in before and before[file] != stamp for file, stamp in self._sources.items())

    def _follow(self) -> None:
        """Watch the folders that matter now; in a thread, since it may wait for a slow disk."""
        wanted: dict[str, bool] = {}
        for folder in tuple(self._ls.folders):
            wanted[folder.path.as_posix()] = False
            if folder.runs.is_dir():
                wanted[folder.runs.as_posix()] = True
            elif folder.runs.parent.is_dir():
                wanted[folder.runs.parent.as_posix()] = False
            for place in sorted({Path(file).parent.as_posix() for file in folder.files()})[:_FOLDERS]:
                wanted.setdefault(place, False)
        for place in [place for place in self._watched if place not in wanted]:
            with contextlib.suppress(Exception):
                self._observer.unschedule(self._watched.pop(place))
        for place, deep in wanted.items():
            if place not in self._watched:
                self._add(place, deep)

    def _add(self, folder: str, deep: bool) -> None:
        from watchdog.events import FileSystemEventHandler
        from watchdog.observers import Observer

        watch = self

        class Poke(FileSystemEventHandler):
            def on_any_event(self, event: Any) -> None:
                if event.event_type not in ("opened", "closed_no_write"):
                    with contextlib.suppress(RuntimeError):
                        watch._loop.call_soon_threadsafe(watch._poked.set)

        try:
            if self._observer is None:
                self._observer = Observer()
                self._observer.daemon = True
                self._observer.start()
            self._watched[folder] = self._observer.schedule(Poke(), folder, recursive=deep)
        except OSError as error:
            # Out of inotify watches, or a file system without: the look once a second remains.
            self._watched[folder] = None
            logger.info("%s is not watched: %s", folder, error)
