"""Which files are the user's."""

from __future__ import annotations

import os
import re
import sysconfig
from collections.abc import Iterable
from types import FrameType

from ..places import absolute, working_folder
from ..tracebacks import is_ours

INSTALLED = re.compile(r"[/\\](site-packages|dist-packages|lib(64)?[/\\]python3(\.\d+)?)[/\\]")


#: A place in a file of the user's: (path, line, qualified name of the function).
Location = tuple[str, int, str]


class UserFiles(dict[str, "str | None"]):
    """``co_filename`` -> absolute path of a user's file, or None; answers are remembered.

    User files are those under ``roots`` (the working folder and the script's) that are not installed
    packages, and all under ``include``.
    """

    def __init__(self, roots: Iterable[str], include: Iterable[str]) -> None:
        super().__init__()
        self.roots = tuple(os.path.join(absolute(root), "") for root in roots)
        self.include = tuple(os.path.join(absolute(folder), "") for folder in include)
        self.library = tuple(
            os.path.join(path, "")
            for path in {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}
            if path
        )
        self.cwd = working_folder()

    def widen(self, roots: Iterable[str]) -> None:
        """Files below ``roots`` are the user's from now on, too."""
        more = [os.path.join(os.path.abspath(root), "") for root in roots]
        if not set(more) <= set(self.roots):
            self.roots = tuple(dict.fromkeys((*more, *self.roots)))
            self.clear()

    def include_too(self, folder: str) -> None:
        """Files below ``folder`` count as the user's from now on, though they are installed."""
        self.include = (*self.include, os.path.join(absolute(folder), ""))
        self.clear()

    def __missing__(self, filename: str) -> str | None:
        found = self[filename] = self._classify(filename)
        return found

    def _classify(self, filename: str) -> str | None:
        if filename.startswith("<") or is_ours(filename):
            return None
        path = os.path.normpath(os.path.join(self.cwd, filename))
        if path.startswith(self.include):
            return path
        if path.startswith(self.library) or INSTALLED.search(path) or not path.startswith(self.roots):
            return None
        return path

    def nearest(self, frame: FrameType | None) -> FrameType | None:
        """The innermost frame of the user's at or outside ``frame``, or None."""
        while frame is not None:
            if self[frame.f_code.co_filename] is not None:
                return frame
            frame = frame.f_back
        return None
