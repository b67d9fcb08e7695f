"""The control file: what the runner is to do. ``runner/control.py`` is its reader."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

import msgspec

from warpline.wire.run import Request


class Purpose(str, Enum):
    PROFILE = "profile"
    TIME = "time"
    WHOLE = "whole"


@dataclass(frozen=True, slots=True)
class Windows:
    """Lengths in steps; None is for the runner to find out."""

    warmup: int | None = None
    timed: int | None = None
    captured: int = 5
    sliced: bool = False  # ``timed`` is the length of one slice; the server says how many
    survey: bool = True  # one step in between is looked at closely
    patient: bool = True  # batches and forwards are no steps while an optimizer may yet make one
    whole_ns: tuple[int, ...] = ()  # of a script without steps: its duration when it ran unprofiled


@dataclass(frozen=True, slots=True)
class Control:
    request: Request
    purpose: Purpose
    folder: str
    pipe: str
    windows: Windows
    seed: int | None = None
    overlay: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    turn: str = ""  # a FIFO: after its import of torch, and between slices, the target waits for a word
    turn_s: float = 0.0  # and no longer than this for each

    @property
    def path(self) -> Path:
        return Path(self.pipe).with_name("control.json")


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
    control.path.write_bytes(msgspec.json.encode(control))
    return control
