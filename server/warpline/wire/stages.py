"""The stages of a capture, in their order, as progress names them."""

from __future__ import annotations

STARTING = "starting"  # until torch is imported and the first step is waited for
HELD = "held"  # after the import of torch, until it is the target's turn
WAITING = "waiting"  # for the first step
WARMUP = "warmup"
TIMING = "timing"
RESTING = "resting"  # before the warm-up or between slices of the timing, while another process has its turn
CAPTURING = "capturing"
WRITING = "writing"
READING = "reading"  # the server's own
ENDING = "ending"  # the script goes on to its end, after everything is written

ALL = (STARTING, HELD, WAITING, WARMUP, TIMING, RESTING, CAPTURING, WRITING, READING, ENDING)

#: Another process has its turn.
TURNS = frozenset({HELD, RESTING})
#: Steps are awaited that were heard before.
STEPPING = frozenset({TIMING, CAPTURING})
#: No step has been seen yet.
BEFORE_STEPS = frozenset({STARTING, HELD, WAITING})
