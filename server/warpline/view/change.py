"""Whether a time changed between two runs by more than their noise, and the text for it."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from warpline.model.report import Report
from warpline.view import units

#: A smaller change is not shown, however steady the steps were: two runs of one script differ by as much.
LEAST = 0.02
#: With fewer timed steps than this nothing is known of their noise.
FEWEST_STEPS = 3


def noise(timed_ns: Sequence[int]) -> float | None:
    """How much the steps of one run differ, as a share of the median step: half the distance between the
    10th and the 90th percentile, 0.02 at least. None where too few steps were timed to tell.

    Single steps and not their mean: what slows a machine down lasts longer than a run, so that the means of
    two runs differ by more than the spread within either says.
    """
    if len(timed_ns) < FEWEST_STEPS:
        return None
    ordered = sorted(timed_ns)
    middle = median(ordered)
    if middle <= 0:
        return None
    last = len(ordered) - 1
    spread = ordered[round(0.9 * last)] - ordered[round(0.1 * last)]
    return max(LEAST, spread / 2 / middle)


def together(before: float | None, after: float | None) -> float | None:
    """The noise of a comparison of two runs; None where that of one is not known."""
    return None if before is None or after is None else before + after


def is_change(before_ms: float, after_ms: float, noise: float | None) -> bool:
    """Whether two times differ by more than ``noise``, a share of the shorter one."""
    if noise is None or min(before_ms, after_ms) < 0:
        return False
    shorter, longer = sorted((before_ms, after_ms))
    return longer > shorter * (1 + noise)


def of_step(before_ms: float, after_ms: float, noise: float | None) -> str:
    """``1.35x``, ``28 % slower`` or ``no measurable change``."""
    if before_ms <= 0 or after_ms <= 0 or not is_change(before_ms, after_ms, noise):
        return "no measurable change"
    return units.gain(before_ms / after_ms)


def of_part(before_ms: float | None, after_ms: float, noise: float | None) -> str:
    """``, was 12.4 ms`` for the time of a line, function or file that changed; else nothing."""
    if before_ms is None or not is_change(before_ms, after_ms, noise):
        return ""
    return f", was {units.ms(before_ms)}"


def comparable(
    before: Report, after: Report, launchers: tuple[Sequence[str], Sequence[str]] = ((), ())
) -> str:
    """Why two runs cannot be compared: other scripts, arguments, launchers or devices; empty: they can.

    ``launchers``: the commands that started the one and the other, such as ``torchrun --nproc-per-node 2``.
    """
    if before.script != after.script:
        return "they are runs of different scripts"
    if before.argv != after.argv:
        told = [" ".join(argv) or "none" for argv in (before.argv, after.argv)]
        return f"they have different arguments: {told[0]} before, {told[1]} after"
    if tuple(launchers[0]) != tuple(launchers[1]):
        told = [" ".join(launcher) or "no launcher" for launcher in launchers]
        return f"they were started differently: with {told[0]} before, {told[1]} after"
    if before.environment.device != after.environment.device:
        devices = (before.environment.device, after.environment.device)
        told = [f"{device.count} x {device.name or device.kind}" for device in devices]
        return f"they ran on different devices: {told[0]} before, {told[1]} after"
    return ""


def difference(ms: float) -> str:
    """``+1.30 ms`` or ``-1.30 ms``."""
    return f"{'+' if ms > 0 else '-'}{units.ms(abs(ms))}"
