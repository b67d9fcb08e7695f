"""Chooses the loop with iterations that are the steps, for scripts without optimizer, loader or model."""

from __future__ import annotations

from dataclasses import replace

from warpline.capture.again import LEAST_BOUNDARIES, shared_out
from warpline.model import units
from warpline.wire.control import Windows
from warpline.wire.loops import Turning
from warpline.wire.messages import Looked
from warpline.wire.run import Request

#: A loop that runs for at least so long (10 s) has room for windows of any length: warm-up, timing, sampling
#: and capture take a few seconds of steps. Chosen, not fitted.
ROOM_NS = 10_000_000_000
NOTE = "looking for the loop whose iterations are the steps"


def may_look(request: Request) -> bool:
    """Whether the script's loops may be searched for steps. Not with ranks, which must agree on their steps,
    nor in a notebook, where cells are compiled in parts."""
    return not request.launcher and not request.first_line and (request.loop is None or request.loop_found)


def chosen(
    request: Request, looked: Looked, windows: Windows, whole_ns: int
) -> tuple[Request, Windows, tuple[str, ...]] | None:
    """How to measure the iterations of the loop that was found, and notes about it; None if none was found.

    ``whole_ns``: how long the script ran, in ns; 0 if unknown.
    """
    if not looked.chosen:
        return None
    turning = looked.chosen[0]
    if turning.turns <= LEAST_BOUNDARIES:
        return None
    known = turning.total_ns if looked.at_end else whole_ns
    short = 0 < known < ROOM_NS
    kept = Windows(windows.warmup, captured=windows.captured, sampler=windows.sampler)
    windows = shared_out(turning.turns, windows.captured) if short else kept
    windows = replace(windows, sampler=kept.sampler)
    return replace(request, loop=turning.loop, loop_found=True), windows, notes(looked)


def notes(looked: Looked) -> tuple[str, ...]:
    """Notes for the report: the loop that was chosen, and the loops around and inside it."""
    turning = looked.chosen[0]
    share = min(1.0, turning.total_ns / max(1, looked.watched_ns))
    told = (
        f"a step is one iteration of the loop at {turning.loop.place} ({short_header(turning)}), the "
        f"outermost loop with enough short and similar iterations; it took {units.percent(share)} of the "
        "time (--loop FILE:LINE chooses another)"
    )
    others = [f"around it {_at(one)} with {one.turns} iterations of {_turn_ms(one)}" for one in looked.around]
    others += [
        f"inside it {_at(one)} with {one.turns / max(1, turning.turns):.3g} iterations a step, "
        f"{_turn_ms(one)} each"
        for one in looked.inside
    ]
    return (told, *(f"other loops: {'; '.join(others)}" for _ in others[:1]))


def short_header(turning: Turning) -> str:
    """The loop's first line, at most 60 characters."""
    header = turning.loop.header
    return header if len(header) <= 60 else header[:57] + "..."


def _at(turning: Turning) -> str:
    return f"the loop at {turning.loop.place}"


def _turn_ms(turning: Turning) -> str:
    return units.ms(turning.turn_ns / 1e6)
