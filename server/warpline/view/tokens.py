"""What a line that calls ``generate`` takes by its passes: prefill, decode, and what is neither."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from warpline.model.report import Line, Passes, Tokens
from warpline.view import units

PREFILL, DECODE, OTHER = "prefill", "decode", "generate itself"
#: From so many passes a step on they are counted by the step, else the steps by the pass. Chosen.
_OFTEN = 0.6


@dataclass(frozen=True, slots=True)
class Kind:
    """``about``: ``31 passes, 35.1 ms each: device 18.9 ms, host 34.9 ms``."""

    name: str
    about: str
    step_ms: float


def kinds(costs: Iterable[Line], beside: bool) -> tuple[Kind, ...]:
    """The kinds of passes of a line with these costs; none where it does not call ``generate``. ``beside``:
    the device works beside the host."""
    return tuple(kind for one in costs if one.tokens is not None for kind in _kinds(one.tokens, beside))


def _kinds(tokens: Tokens, beside: bool) -> tuple[Kind, ...]:
    passes = tokens.prefill.count + tokens.decode.count
    each = f"{units.ms(tokens.other_ms / passes)} a token" if passes else ""
    return (
        Kind(PREFILL, _about(tokens.prefill, beside), tokens.prefill.step_ms),
        Kind(DECODE, _about(tokens.decode, beside), tokens.decode.step_ms),
        Kind(OTHER, each, tokens.other_ms),
    )


def _about(passes: Passes, beside: bool) -> str:
    times = [
        ("device" if beside else "operators", passes.pass_device_ms),
        ("host", passes.pass_host_ms if beside else None),
    ]
    parts = ", ".join(f"{name} {units.ms(value)}" for name, value in times if value is not None)
    return ": ".join(filter(None, (_counted(passes), parts)))


def _counted(passes: Passes) -> str:
    each = units.ms(passes.pass_ms)
    if passes.count >= _OFTEN:
        count = round(passes.count, 1)
        return f"{each} a pass" if count == 1 else f"{units.count(count)} passes, {each} each"
    if passes.count > 0:
        return f"a pass in {round(1 / passes.count)} steps, {each}"
    return f"none in the timed steps, {each}" if passes.pass_ms > 0 else "none"
