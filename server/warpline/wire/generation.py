"""The forward passes of ``generate``. Each makes one token of every sequence."""

from __future__ import annotations

from dataclasses import dataclass

from .places import Placed

#: Kinds of spans. A call of ``generate``; in it the encoder's pass over the prompt, where a model has an
#: encoder; the model's first pass, which reads the prompt; each later one.
CALL, ENCODER, PREFILL, DECODE = range(4)


@dataclass(frozen=True)
class Generation(Placed):
    """The calls of ``generate`` at one line of the user's.

    ``spans``: ``(begin, end, kind, native thread id)`` in ns of unix time, after the timing window; in order
    of their ends. A call that has not ended when the run is written ends there. The others are of the steps
    in the timing window: how many calls' first passes there were and how many later ones, and how long the
    host was in these, encoders included, and in the calls; full garbage collections left out.
    """

    file: str
    line: int
    function: str
    spans: tuple[tuple[int, int, int, int], ...] = ()
    prefills: int = 0
    decodes: int = 0
    prefill_ns: int = 0
    decode_ns: int = 0
    calls_ns: int = 0
