"""What the runner tells through the pipe: a JSON object a line, ``{"event": …, "rank": k, **fields}``.

``event`` names the kind (``EVENTS``); ``rank`` is the process's, 0 without a launcher. A line that is none
of these is left out by the reader.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Union

from .loops import Loop, Turning


@dataclass(frozen=True)
class Progress:
    stage: str  # one of ``wire.stages``
    done: int  # steps of this stage that are done
    total: int | None  # None where the end is not known
    message: str  # for a person: "warm-up 2/5"


@dataclass(frozen=True)
class Compiling:
    """A compilation begins or is over."""

    begun: bool


@dataclass(frozen=True)
class Failed:
    """Measuring is over, and nothing was measured."""

    message: str
    status: int  # the exit status that the command shall have


@dataclass(frozen=True)
class Pausing:
    """The profiler is being stopped, and nothing is measured until what it recorded is written."""

    written: int  # bytes of the trace from earlier pauses, up to the end of its last event


@dataclass(frozen=True)
class Ready:
    """Everything that was asked for has been written by this rank."""

    world: int  # ranks on this machine


@dataclass(frozen=True)
class Ended:
    """The script is over. Sent at its end, also when it was measured before."""

    steps: int = 0
    boundaries: int = 0  # step boundaries that could be used; the first ones pass before the beat is found
    held: int = 0  # batches or forwards not taken for steps, since an optimizer might have made some
    clean: bool = False  # it came to its end by itself, or by an exit with status 0
    status: int | None = None  # its exit status, where it asked for one
    error: str | None = None  # the name of the exception's class
    message: str = ""  # the exception's text
    whole_ns: int = 0  # from the import of torch to the end
    children_s: float = 0.0  # processor time of processes that it had started and that have ended
    own_s: float = 0.0  # its own since the import of torch
    torch: bool = False  # it imported torch
    beat: str | None = None  # the kind of its beat, where one object alone was heard of that kind
    recording: bool = False  # it failed in a step whose operators were recorded
    #: It was stopped because forward passes ran in several loops of the user's, one inside another.
    nested: tuple[Loop, ...] = ()
    unmarked: bool = False  # it was stopped because a loop computed for long and nothing marked a step


@dataclass(frozen=True)
class Looked:
    """The loops of a script were watched: the one to count turns of first, then those around and inside it.

    Empty where none turns often enough.
    """

    chosen: tuple[Turning, ...] = ()
    around: tuple[Turning, ...] = ()
    inside: tuple[Turning, ...] = ()
    watched_ns: int = 0
    at_end: bool = False  # the script came to its end: these are all turns


@dataclass(frozen=True)
class Replaced:
    """The process becomes another program, by ``os.exec…``, which is not watched."""

    program: str


Message = Union[Progress, Compiling, Failed, Pausing, Ready, Ended, Looked, Replaced]  # noqa: UP007 - Python 3.9

EVENTS: dict[str, type[Message]] = {
    "progress": Progress,
    "compiling": Compiling,
    "problem": Failed,
    "pausing": Pausing,
    "ready": Ready,
    "ended": Ended,
    "looked": Looked,
    "replaced": Replaced,
}
