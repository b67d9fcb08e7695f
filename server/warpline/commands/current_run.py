"""The run that is still valid for a script: same arguments, unchanged sources."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import NamedTuple

from warpline.commands import run_argument, target
from warpline.model.problem import Problem
from warpline.model.profile import Profile
from warpline.wire.run import Request


class Wanted(NamedTuple):
    """What ``plan`` and ``tune`` work on."""

    folder: Path  # for a new run
    request: Request
    run: Path | None  # the newest of the script; None where there is none that is still valid


def wanted(options: argparse.Namespace) -> Wanted:
    """The run and the script that a command is about: from the command line, else from the newest run. Raises
    Problem."""
    from warpline import runs

    folder = Path(options.run_dir).absolute() if options.run_dir else runs.nearest(Path.cwd())
    if not options.run_dir and not folder.is_dir():
        folder = runs.runs_folder(Path.cwd())
    request = target.request(options)
    run = newest(request, folder)
    if run is not None:
        request = target.again(options, runs.manifest(run).request)
    return Wanted(folder, request, run if run is not None and is_of(run, request) else None)


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
