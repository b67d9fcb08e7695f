"""Notes from the driver (NVML) on the timing window, where they explain the times or contradict the trace."""

from __future__ import annotations

from collections.abc import Iterator

from warpline.model import units
from warpline.wire.facts import Nvml
from warpline.wire.run import Facts

#: Fewest NVML samples (one every 0.1 s) for a mean: NVML itself averages over up to a second.
LEAST_SAMPLES = 5
#: Percentage points by which the busy share of NVML, which counts whole periods, and of the trace may differ.
SAME_POINTS = 20.0
#: A slowdown is noted if it lasted for at least SLOWED_SHARE of the window and the mean clock rate was at
#: most SLOWED_CLOCK of the highest (an H200 at its power limit ran at 75 % to 99 %).
SLOWED_SHARE = 0.1
SLOWED_CLOCK = 0.95
#: If the mean clock rate is below this share of the highest one, something slowed the busy device down.
LOW_CLOCK = 0.85
#: Bytes that a context, its libraries and NCCL's buffers may hold outside torch's allocator (0.8 GB on an
#: H200).
BESIDE_TORCH_BYTES = 4 << 30


def driver_notes(facts: Facts, busy_percent: float, copying_percent: float = 0.0) -> list[str]:
    """``busy_percent``: the device's busy share of the step, as the trace has it. ``copying_percent``: what
    of it is copies alone, which NVML does not count: its utilization is the time in which a kernel ran."""
    return [*_clocks(facts.nvml), *_others(facts), *_busy(facts.nvml, busy_percent, copying_percent)]


def _reasons(nvml: Nvml) -> Iterator[tuple[float | None, str]]:
    yield nvml.throttle_power_cap, "its power limit"
    yield nvml.throttle_hardware_slowdown, "a hardware slowdown"
    yield nvml.throttle_thermal_software, "heat"
    yield nvml.throttle_thermal_hardware, "heat"
    yield nvml.throttle_power_brake, "an external power brake"


def held_back(nvml: Nvml) -> float:
    """How many times slower than its highest the device's clock was in the timing window, where the driver
    names a reason that makes it worth a note; else 1."""
    clock, highest = nvml.clock_mhz or 0.0, nvml.max_clock_mhz or 0.0
    return highest / clock if _slowed(nvml) and 0 < clock <= SLOWED_CLOCK * highest else 1.0


def _slowed(nvml: Nvml) -> dict[str, float]:
    """Reasons with their shares of the window."""
    return {word: share for share, word in _reasons(nvml) if share is not None and share >= SLOWED_SHARE}


def _clocks(nvml: Nvml) -> list[str]:
    clock, highest = nvml.clock_mhz or 0.0, nvml.max_clock_mhz or 0.0
    speed = f"{clock:.0f} of {highest:.0f} MHz on average"
    reasons = _slowed(nvml)
    if reasons and clock <= SLOWED_CLOCK * highest:
        longest = max(reasons.values())
        words = " and ".join(reasons)
        return [
            f"the device was slowed down by {words} in {units.percent(longest)} of the timing window: {speed}"
        ]
    busy = (nvml.utilisation_percent or 0.0) >= 50 and (nvml.utilisation_samples or 0) >= LEAST_SAMPLES
    if busy and highest and clock < LOW_CLOCK * highest:
        return [
            (f"the device ran at {speed} while it was busy, and the driver gives no reason (fixed clocks?)")
        ]
    return []


def _others(facts: Facts) -> list[str]:
    notes = []
    if others := int(facts.nvml.other_processes or 0):
        what = "another process" if others == 1 else f"{others} other processes"
        notes.append(f"{what} had the device open: their work on it is part of these times")
    memory = facts.memory
    if memory.free_bytes is not None and memory.total_bytes is not None:
        beside = memory.total_bytes - memory.free_bytes - (memory.reserved_bytes or 0.0)
        if beside > BESIDE_TORCH_BYTES:
            notes.append(f"{units.size(beside)} of the device's memory was held outside torch's allocator")
    return notes


def _busy(nvml: Nvml, busy_percent: float, copying_percent: float) -> list[str]:
    seen = nvml.utilisation_percent
    if seen is None or (nvml.utilisation_samples or 0) < LEAST_SAMPLES:
        return []
    if -SAME_POINTS - copying_percent < seen - busy_percent < SAME_POINTS:
        return []
    why = (
        "another process used it, or the captured steps differ from the timed ones"
        if seen > busy_percent
        else "the captured steps were busier than the timed ones"
    )
    return [
        f"NVML saw the device busy {units.percentage(seen)} of the timing window, the trace says "
        f"{units.percentage(busy_percent)}: {why}"
    ]
