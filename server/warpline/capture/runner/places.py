"""Absolute paths, even if the process's working folder is deleted while it runs."""

from __future__ import annotations

import os

_FIRST = os.getcwd()  # when the runner was started


def working_folder() -> str:
    """The working folder; the one at the start where that is gone."""
    try:
        return os.getcwd()
    except OSError:
        return _FIRST


def absolute(path: str) -> str:
    """The same as ``os.path.abspath``, which fails where the working folder is gone."""
    return os.path.normpath(os.path.join(working_folder(), path))
