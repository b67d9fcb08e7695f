"""Writes a report as a table, or as JSON to a file or to standard output."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warpline.model.problem import Problem

if TYPE_CHECKING:
    from warpline.model.report import Report

#: What a row of the printed table may be.
VIEWS = ("line", "operator", "kernel", "memory")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--json", metavar="FILE", help="write JSON to FILE ('-': standard output, and no table)"
    )
    views(parser)


def views(parser: argparse.ArgumentParser) -> None:
    """Adds ``--top`` and ``--by``, for what prints a report."""
    parser.add_argument("--top", type=rows, metavar="N", help="rows to show (as many as matter)")
    parser.add_argument(
        "--by",
        choices=VIEWS,
        default="line",
        help="what a row is (line); memory: a line with the memory it holds",
    )


def rows(text: str) -> int:
    """An argparse type: a number of rows, at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def check(options: argparse.Namespace) -> None:
    """Raise Problem for a place that cannot be written, before a run is made and not after."""
    if options.json and options.json != "-" and not Path(options.json).absolute().parent.is_dir():
        raise Problem(f"cannot write {options.json}: there is no such folder")
    if options.json and Path(options.json).is_dir():
        raise Problem(f"cannot write {options.json}: it is a folder")


def write(run: Path, report: Report, options: argparse.Namespace) -> None:
    """The table on standard output, unless ``--json -`` claims that for the report. Lines are those that ran;
    a note says of files that were saved since where they are now."""
    from warpline import runs
    from warpline.syntax.files import text_of
    from warpline.view import since

    saved = since.notes(report, runs.sources(run), text_of, str(Path.cwd()))
    report = replace(report, notes=(*report.notes, *saved))
    if options.json:
        json(report, options.json)
    if options.json != "-":
        table(run, report, options)


def prepare() -> None:
    """Import what :func:`write` usually needs, for a thread beside what makes the report."""
    from warpline.terminal import report  # noqa: F401
    from warpline.view import since  # noqa: F401


def table(run: Path, report: Report, options: argparse.Namespace) -> None:
    """The table on standard output, by what ``--by`` says."""
    from warpline import pipeline

    profile = pipeline.profile_of(run)
    if options.by == "line":
        from warpline.terminal import report as by_line

        by_line.show(run, report, profile, top=options.top)
    elif options.by == "memory":
        from warpline.terminal import memory

        memory.show(run, report, profile, top=options.top)
    else:
        from warpline.terminal import uses

        uses.show(run, report, profile, options.by, top=options.top)


def json(value: Any, destination: str) -> None:
    """``value`` as JSON into the file ``destination``, or to standard output for ``-``."""
    import msgspec

    write_bytes(msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n", destination)


def write_bytes(data: bytes, destination: str) -> None:
    """All of ``data`` or nothing: a reader never sees half a file. Raises Problem."""
    if destination == "-":
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    path = Path(destination)
    if path.is_dir():
        raise Problem(f"cannot write {destination}: it is a folder")
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(data)  # a pipe or /dev/stderr: nothing to replace
            return
        scratch.write_bytes(data)
        scratch.replace(path)
    except OSError as error:
        scratch.unlink(missing_ok=True)
        raise Problem(f"cannot write {destination}: {(error.strerror or str(error)).lower()}") from None
