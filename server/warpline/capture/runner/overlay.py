"""Runs edited sources in place of the originals, in memory: nothing on disk changes.

Stands alone (``runpy.run_path`` runs it in spawned workers with ``OVERLAY`` set): it imports nothing
of the runner's. ``__file__``, ``co_filename`` and data paths stay those of the original.
"""

from __future__ import annotations

import importlib.machinery
import io
import linecache
import os
import runpy
import sys
from collections.abc import Callable
from typing import Any


def install(overlay: dict[str, str], here: str) -> None:
    """Lay ``overlay`` ({path: text}) over this process and over the workers that it will spawn.

    ``here`` is the path of this file.
    """
    overlay = {os.path.realpath(path): text for path, text in overlay.items()}
    if not overlay:
        return

    def edited(path: object, realpath: Callable[[str], str] = os.path.realpath) -> str | None:
        return overlay.get(realpath(path)) if isinstance(path, str) else None

    loader: Any = importlib.machinery.SourceFileLoader
    get_code, get_data, open_code = loader.get_code, loader.get_data, io.open_code

    def overlaid_code(self: Any, fullname: str) -> Any:
        text = edited(self.path)
        return get_code(self, fullname) if text is None else self.source_to_code(text.encode(), self.path)

    def overlaid_data(self: Any, path: Any) -> Any:
        text = edited(path)
        return get_data(self, path) if text is None else text.encode()

    def overlaid_open(path: Any) -> Any:
        text = edited(path)
        return open_code(path) if text is None else io.BytesIO(text.encode())

    loader.get_code = overlaid_code
    loader.get_data = overlaid_data
    io.open_code = overlaid_open
    for path, text in overlay.items():
        lines = list(io.StringIO(text, newline=None))  # str.splitlines also breaks at form feeds
        # No modification time: linecache then never goes back to the disk. inspect and triton read here.
        linecache.cache[path] = (len(text), None, lines, path)
    _carry_into_spawned_workers(overlay, here)


def _carry_into_spawned_workers(overlay: dict[str, str], here: str) -> None:
    from multiprocessing import spawn

    prepare = spawn.get_preparation_data

    class Carried:
        def __reduce__(self) -> tuple[Any, ...]:
            return runpy.run_path, (here, {"OVERLAY": overlay, "HERE": here})

    def with_overlay(name: str) -> dict[str, Any]:
        # The worker unpickles this before it looks at its main module.
        return {"warpline": Carried(), **prepare(name)}

    spawn.get_preparation_data = with_overlay
    if "multiprocessing.popen_spawn_posix" in sys.modules:
        sys.modules["multiprocessing.popen_spawn_posix"].spawn.get_preparation_data = with_overlay


if "OVERLAY" in globals():
    install(globals()["OVERLAY"], globals()["HERE"])
