"""The cost of lines inside the worker processes of loaders."""

from __future__ import annotations

from dataclasses import dataclass

from .places import Placed


@dataclass(frozen=True)
class WorkerLine(Placed):
    """A line of the user's in a worker, or of the library whose class the dataset is; other code below it
    counts for it."""

    file: str
    line: int
    function: str
    batch_ms: float  # wall time a batch, without the cost of recording
    calls: float  # times a batch that the line began
    text: str = ""  # of a library's line


@dataclass(frozen=True)
class Workers:
    """Means over the recorded batches of all workers. A batch is made by one worker."""

    batches: int  # recorded line by line; 0: only timed
    batch_ms: float  # one batch, not recorded where such batches were seen
    lines: tuple[WorkerLine, ...]
    queued_ms: float = 0.0  # of ``batch_ms``, a worker waited for a processor
    #: Processors that one worker uses in the rest of that time (0.1: it mostly waits for something else).
    #: None where that was not recorded.
    busy: float | None = None
