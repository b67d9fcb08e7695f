"""Which files are the user's."""

import os
import re
import sysconfig

from ..tracebacks import is_ours

INSTALLED = re.compile(r"[/\\](site-packages|dist-packages|lib(64)?[/\\]python3(\.\d+)?)[/\\]")


class UserFiles(dict):
    """``co_filename`` -> absolute path of a user's file, or None; answers are remembered.

    The user's is what lies under ``roots`` (the working and the script's folder) and is not
    installed, and whatever lies under ``include``.
    """

    def __init__(self, roots, include):
        super().__init__()
        self.roots = tuple(os.path.join(os.path.abspath(root), "") for root in roots)
        self.include = tuple(os.path.join(os.path.abspath(folder), "") for folder in include)
        self.library = tuple(
            os.path.join(path, "")
            for path in {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}
            if path
        )
        self.cwd = os.getcwd()

    def __missing__(self, filename):
        found = self[filename] = self._classify(filename)
        return found

    def _classify(self, filename):
        if filename.startswith("<") or is_ours(filename):
            return None
        path = os.path.normpath(os.path.join(self.cwd, filename))
        if path.startswith(self.include):
            return path
        if path.startswith(self.library) or INSTALLED.search(path) or not path.startswith(self.roots):
            return None
        return path

    def nearest(self, frame):
        """The innermost frame of the user's at or outside ``frame``, or None."""
        while frame is not None:
            if self[frame.f_code.co_filename] is not None:
                return frame
            frame = frame.f_back
        return None
