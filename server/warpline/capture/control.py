"""Writes the control file. ``runner/control.py`` is its reader."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

import msgspec

from warpline.wire.control import Control, Purpose, Windows
from warpline.wire.run import Request


def path_of(control: Control) -> Path:
    """The control file, next to the pipe."""
    return Path(control.pipe).with_name("control.json")


def write_control(
    request: Request,
    folder: Path,
    purpose: Purpose,
    *,
    windows: Windows | None = None,
    seed: int | None = None,
    overlay: Mapping[str, str] | None = None,
    notes: tuple[str, ...] = (),
    turn: str = "",
    turn_s: float = 0.0,
) -> Control:
    """Make a private folder with the control file and the pipe (a FIFO: it reaches the ranks that a
    launcher starts, where an inherited descriptor would not)."""
    private = Path(tempfile.mkdtemp(prefix="warpline-"))
    pipe = private / "progress"
    os.mkfifo(pipe, 0o600)
    windows = windows or Windows(warmup=request.warmup, captured=max(1, request.steps))
    control = Control(
        request, purpose, str(folder), str(pipe), windows, seed, dict(overlay or {}), notes, turn, turn_s
    )
    path_of(control).write_bytes(msgspec.json.encode(control))
    return control
