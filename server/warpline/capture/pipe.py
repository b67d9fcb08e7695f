"""Reads the runner's messages from the pipe."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from warpline.wire.messages import EVENTS, Message


@dataclass(frozen=True, slots=True)
class Heard:
    """One message; None while nothing was said."""

    message: Message | None = None
    rank: int = 0


class Line(msgspec.Struct):
    """What every line has; the other fields are its event's."""

    event: str
    rank: int


def hear(line: bytes) -> Heard | None:
    """The message on one line of the pipe; None for a line that is none, or of an unknown event."""
    try:
        head = msgspec.json.decode(line, type=Line)
        kind = EVENTS.get(head.event)
        return None if kind is None else Heard(msgspec.json.decode(line, type=kind), head.rank)
    except msgspec.MsgspecError:
        return None
