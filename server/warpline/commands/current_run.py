"""The run that is still valid for a script: same arguments, unchanged sources."""

from __future__ import annotations

from pathlib import Path

from warpline.commands import run_argument
from warpline.model.problem import Problem
from warpline.model.profile import Profile
from warpline.wire.run import Request


def newest(request: Request, folder: Path) -> Path | None:
    """The newest run of the script or module, if there is one."""
    try:
        return run_argument.newest_of(request, folder)
    except Problem:
        return None


def is_of(run_folder: Path, request: Request) -> bool:
    """The run is of these arguments, and of the sources as they are."""
    from warpline import pipeline, runs

    try:
        same = runs.manifest(run_folder).argv == request.argv
        return same and not _changed(pipeline.profile_of(run_folder))
    except Problem:
        return False


def _changed(profile: Profile) -> bool:
    from warpline.syntax.files import text_of

    return any(text_of(file) != text for file, text in profile.sources.items())
