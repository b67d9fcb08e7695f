"""Writes the data of a session's windows and observers, as a run folder or as the figures of a timing."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from ....wire import timing
from .. import folder
from ..device import peaks
from .timing import figures

if TYPE_CHECKING:
    from ..session import Session


def write(session: Session, stamps: Sequence[int]) -> None:
    """``stamps``: the boundaries of the captured steps, unix time in ns. Raises OSError."""
    session.recorder.write(
        {
            "step_source": session.steps.chosen or "whole",
            "timed_ns": session.timed,
            "others_share": session.classes.share,
            "captured": list(zip(stamps[:-1], stamps[1:])),  # noqa: RUF007 - Python 3.9 has no pairwise
            "notes": [*session.notes, *session.recorder.notes, *session.observers.notes()],
        },
        {
            **session.observers.all_facts(stamps),
            "host_step_ns": session.host_step_ns,
            "host_forward_ns": session.host_forward_ns,
            "peaks": peaks.device_peaks(session.torch, session.control.request.peaks),
        },
    )


def write_timing(session: Session, steps_ns: tuple[int, ...]) -> None:
    """Raises OSError."""
    os.makedirs(session.control.folder, exist_ok=True)
    folder.write_whole(session.control.folder, timing.NAME, asdict(figures(session, steps_ns)))
