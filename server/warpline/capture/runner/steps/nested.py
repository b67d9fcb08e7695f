"""Finds forward passes and gradients in nested user loops: an iteration of any of these may be the step."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import TYPE_CHECKING

from ....wire.loops import Loop
from ..tracebacks import is_ours
from . import written

if TYPE_CHECKING:
    from ..lines.userfiles import UserFiles

TWO = 2  # loops at least: with a single one there is no choice


class Nested:
    """``found``: the loops around a forward or gradient that user code calls, if there are at least two."""

    def __init__(
        self,
        user_files: UserFiles,
        text: Callable[[str], str | None],
        torch_folder: str,
    ) -> None:
        self.user_files = user_files
        self.text = text
        self.torch_folder = torch_folder
        self.found: tuple[Loop, ...] = ()
        self.trees: dict[str, ast.Module | None] = {}
        self.known: dict[tuple[CodeType, int], list[Loop]] = {}

    def look(self) -> None:
        """Look at the loops around the running forward or gradient. Calls by a library (``generate``, a
        trainer) are ignored."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and self._torch(frame.f_code.co_filename):
            frame = frame.f_back
        if frame is None or self.user_files[frame.f_code.co_filename] is None:
            return
        found = dict.fromkeys(self.found)
        before = len(found)
        depth = 0
        while frame is not None:
            here = self.around(frame)
            found.update(dict.fromkeys(here))
            depth += len(here)
            frame = frame.f_back
        if depth >= TWO and len(found) > before:
            self.found = tuple(found)

    def _torch(self, file: str) -> bool:
        return file.startswith(self.torch_folder) or is_ours(file)

    def around(self, frame: FrameType) -> list[Loop]:
        """The loops of a user's function around the line that it runs, outermost first."""
        path = self.user_files[frame.f_code.co_filename]
        if path is None:
            return []
        key = (frame.f_code, frame.f_lineno)
        if key not in self.known:
            tree = self._tree(path)
            try:
                self.known[key] = [] if tree is None else written.around(tree, path, frame.f_lineno)
            except (ValueError, RecursionError):  # see ``compiling``
                self.known[key] = []
        return self.known[key]

    def names_at(self, frame: FrameType) -> set[str]:
        """The names on the line that a user's function runs."""
        path = self.user_files[frame.f_code.co_filename]
        tree = None if path is None else self._tree(path)
        named = () if tree is None else (node for node in ast.walk(tree) if isinstance(node, ast.Name))
        return {node.id for node in named if node.lineno == frame.f_lineno}

    def _tree(self, path: str) -> ast.Module | None:
        if path not in self.trees:
            try:
                self.trees[path] = ast.parse(self.text(path) or "")
            except (SyntaxError, ValueError, RecursionError):
                self.trees[path] = None
        return self.trees[path]
