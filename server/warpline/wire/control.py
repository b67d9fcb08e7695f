"""The control file: the runner's instructions. ``control.json``, beside the pipe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from .loops import Loop
from .run import Request

#: The words of a turn, a byte each: go on until the next wait, or come to the end.
GO, END = b"g", b"e"


class Purpose(str, Enum):
    PROFILE = "profile"
    TIME = "time"
    WHOLE = "whole"  # a script without steps
    LOOPS = "loops"  # nothing is measured: which loop's turns are its steps


@dataclass(frozen=True)
class Windows:
    """Lengths in steps; None is for the runner to find out."""

    warmup: int | None = None
    timed: int | None = None
    captured: int = 5
    sliced: bool = False  # ``timed`` is the length of one slice; the server says how many
    survey: bool = True  # one step in between is looked at closely
    survey_first: bool = False  # before steps are timed, as the last step of the warm-up
    survey_at_once: bool = False  # in what is seen of a step before the first boundary
    operators: bool = True  # the survey records a step's operators
    look: bool = True  # for quick loops, which takes two steps more
    rehearse: bool = True  # a step is recorded before those that count
    beat: str | None = None  # what its steps begin with, from an earlier run
    muted: bool = False  # the script's own profiler is switched off
    patient: bool = True  # batches and forwards are no steps while an optimizer may yet make one
    sampler: str = ""  # path of py-spy, where our own sampler cannot work; empty: lines are not sampled
    sampled: int | None = None  # steps; None: as many as it takes; 0: lines are not sampled
    sampled_last: bool = False  # behind the capture, where steps may be too few for both
    #: The run ends where loops are to be looked at first: forward passes run in several of them, one inside
    #: another, or one computes for long and nothing marks a step.
    may_look: bool = False
    loops: tuple[Loop, ...] = ()  # of purpose "loops": those to look at; none: all
    whole_ns: tuple[int, ...] = ()  # of a script without steps: its duration when it ran unprofiled


@dataclass(frozen=True)
class Control:
    request: Request
    purpose: Purpose
    folder: str  # that the run, or timing.json, is to be written to
    pipe: str  # path of the FIFO for messages
    windows: Windows
    seed: int | None = None  # for torch, random and numpy; None: not touched
    overlay: Mapping[str, str] = field(default_factory=dict)  # {path: text} laid over the sources
    notes: tuple[str, ...] = ()
    turn: str = ""  # a FIFO: after its import of torch, and between slices, the target waits for a word
    turn_s: float = 0.0  # and no longer than this for each
