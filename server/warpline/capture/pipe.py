"""Reads the runner's messages from the pipe."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from warpline.wire.messages import EVENTS, Message


@dataclass(frozen=True, slots=True)
class Heard:
    """One message from a rank; ``message`` is None if there was none."""

    message: Message | None = None
    rank: int = 0


class Line(msgspec.Struct):
    """The fields of every line; the others depend on the event."""

    event: str
    rank: int


def hear(line: bytes) -> Heard | None:
    """The message on one line of the pipe; None if the line is not valid or its event is unknown."""
    try:
        head = msgspec.json.decode(line, type=Line)
        kind = EVENTS.get(head.event)
        return None if kind is None else Heard(msgspec.json.decode(line, type=kind), head.rank)
    except msgspec.MsgspecError:
        return None
