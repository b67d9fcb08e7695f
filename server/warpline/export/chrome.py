"""The run's own trace with more events in it, written without reading it into memory."""

from __future__ import annotations

import gzip
import os
import re
import shutil
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any, cast

import msgspec

from warpline import packed
from warpline.model.problem import Problem

_EVENTS = re.compile(rb'"traceEvents"\s*:\s*\[')
_BASE = re.compile(rb'"baseTimeNanoseconds"\s*:\s*(\d+)')
_HEAD = 1 << 20  # bytes: what is before the events is far less


def base_ns(trace: Path) -> int:
    """Unix time in ns at which the trace's own times begin; 0 if the trace does not say so before its events.
    Raises Problem for a damaged file."""
    try:
        with _opened(trace) as file:
            found = _BASE.search(file.read(_HEAD))
    except packed.ERRORS as error:
        raise Problem(f"{trace} is damaged: {error}") from None
    return int(found[1]) if found is not None else 0


def write(trace: Path, events: Iterable[dict[str, Any]], destination: Path) -> None:
    """``trace`` with ``events`` before its own, packed where ``destination`` ends in .gz.

    All of it or nothing. Raises Problem.
    """
    scratch = destination.with_name(f".{destination.name}.{os.getpid()}")
    try:
        with ExitStack() as open_files:
            source = _opened(trace)
            open_files.callback(source.close)
            out: IO[bytes] = open_files.enter_context(scratch.open("wb"))
            if destination.suffix == ".gz":
                small = open_files.enter_context(gzip.GzipFile(fileobj=out, mode="wb", compresslevel=6))
                out = cast(IO[bytes], small)
            _merge(source, events, out, trace)
        scratch.replace(destination)
    except packed.ERRORS as error:
        raise Problem(f"{trace} is damaged: {error}") from None
    except OSError as error:
        raise Problem(f"cannot write {destination}: {(error.strerror or str(error)).lower()}") from None
    finally:
        scratch.unlink(missing_ok=True)


def _merge(source: IO[bytes], events: Iterable[dict[str, Any]], out: IO[bytes], trace: Path) -> None:
    head = source.read(_HEAD)
    begin = _EVENTS.search(head)
    if begin is None:
        raise Problem(f"{trace} is not a Chrome trace: it has no traceEvents")
    out.write(head[: begin.end()])
    encode, first = msgspec.json.Encoder().encode, True
    for event in events:
        out.write((b"\n" if first else b",\n") + encode(event))
        first = False
    rest = head[begin.end() :].lstrip() or source.read(_HEAD).lstrip()
    if not first and not rest.startswith(b"]"):
        out.write(b",\n")
    out.write(rest)
    shutil.copyfileobj(source, out, 1 << 20)


def _opened(trace: Path) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(trace)) if trace.suffix == ".gz" else trace.open("rb")
