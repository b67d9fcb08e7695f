"""Which files are a library's: neither the user's, nor torch's, nor Python's own."""

from __future__ import annotations

import os

from ..lines.userfiles import UserFiles
from ..tracebacks import is_ours

#: Packages that are torch, beside the folder of ``torch`` itself.
TORCH = ("torch", "functorch", "torchgen", "triton")
#: Prefix of the folder for code that Inductor generates.
GENERATED = "torchinductor"
_INSTALLED = (os.sep + "site-packages" + os.sep, os.sep + "dist-packages" + os.sep)


class LibraryFiles(dict):  # type: ignore[type-arg]
    """``co_filename`` -> absolute path of a library's file, or None; answers are remembered."""

    def __init__(self, user_files: UserFiles, torch_file: str) -> None:
        super().__init__()
        self.user_files = user_files
        packages = os.path.dirname(os.path.dirname(os.path.abspath(torch_file)))
        self.torch = tuple(os.path.join(packages, name) + os.sep for name in TORCH)

    def __missing__(self, filename: str) -> str | None:
        found = self[filename] = self._classify(filename)
        return found

    def _classify(self, filename: str) -> str | None:
        if filename.startswith("<") or is_ours(filename) or self.user_files[filename] is not None:
            return None
        path = os.path.normpath(os.path.join(self.user_files.cwd, filename))
        if path.startswith(self.torch) or GENERATED in path:
            return None
        installed = any(part in path for part in _INSTALLED)
        return path if installed or not path.startswith(self.user_files.library) else None
