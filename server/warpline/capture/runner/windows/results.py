"""The run folder of a capture, from what the session's windows and observers hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..device import peaks

if TYPE_CHECKING:
    from ..session import Session


def write(session: Session, stamps: Sequence[int]) -> None:
    """``stamps``: the boundaries of the captured steps, unix time in ns. Raises OSError."""
    session.recorder.write(
        {
            "step_source": session.steps.chosen or "whole",
            "timed_ns": session.timed,
            "others_share": session.classes.share,
            "captured": list(zip(stamps[:-1], stamps[1:])),
            "notes": [*session.notes, *session.recorder.notes, *session.observers.notes()],
        },
        {
            **session.observers.all_facts(),
            "host_step_ns": session.host_step_ns,
            "host_forward_ns": session.host_forward_ns,
            "peaks": peaks.of(session.torch, session.control.request.peaks),
        },
    )
