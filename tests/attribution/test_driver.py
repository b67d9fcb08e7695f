"""Notes from what NVML saw: what slowed the device, who else used it, and where it contradicts the trace."""

from __future__ import annotations

import pytest

from warpline.attribution.driver import driver_notes, held_back
from warpline.wire.facts import Memory, Nvml
from warpline.wire.run import Facts

#: As an H200 was seen in a long window of matrix products, with nobody else on it.
QUIET = {
    "utilisation_percent": 98.9, "utilisation_samples": 77, "samples": 87, "clock_mhz": 1980.0,
    "max_clock_mhz": 1980, "power_w": 633.0, "throttle_power_cap": 0.0, "other_processes": 0,
}  # fmt: skip
MEMORY = {"total_bytes": 150109880320.0, "free_bytes": 148475346944.0, "reserved_bytes": 843055104.0}


def notes(busy_percent: float = 99.0, memory: dict[str, float] = MEMORY, **nvml: float) -> list[str]:
    return driver_notes(Facts(nvml=Nvml(**{**QUIET, **nvml}), memory=Memory(**memory)), busy_percent)


def test_a_quiet_device_needs_no_note() -> None:
    assert notes() == []
    assert driver_notes(Facts(), 50.0) == []


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        (
            {"throttle_power_cap": 0.5, "clock_mhz": 1410.0},
            "slowed down by its power limit in 50 % of the timing window: 1410 of 1980 MHz",
        ),
        (
            {"throttle_thermal_software": 0.2, "throttle_thermal_hardware": 0.3, "clock_mhz": 1700.0},
            "by heat in 30 %",
        ),
        ({"clock_mhz": 1200.0}, "1200 of 1980 MHz on average while it was busy"),
        ({"other_processes": 1}, "another process had the device open"),
        ({"other_processes": 3}, "3 other processes had the device open"),
        ({"utilisation_percent": 60.0}, "busy 60 % of the timing window, the trace says 99 %"),
    ],
)
def test_what_is_worth_a_note(seen: dict[str, float], words: str) -> None:
    (note,) = notes(**seen)
    assert words in note


def test_nvml_does_not_count_copies() -> None:
    """Of a step with 58 % kernels and 41 % copies it was said that the captured steps were busier."""
    facts = Facts(nvml=Nvml(**{**QUIET, "utilisation_percent": 54.0}), memory=Memory(**MEMORY))
    assert driver_notes(facts, 99.0, 41.0) == []
    assert len(driver_notes(facts, 99.0, 20.0)) == 1


def test_a_short_window_proves_nothing() -> None:
    assert notes(utilisation_percent=30.0, utilisation_samples=3) == []
    assert notes(clock_mhz=1200.0, utilisation_samples=3) == []
    assert notes(throttle_power_cap=0.05, clock_mhz=1500.0, utilisation_samples=3) == []


def test_a_limit_that_takes_next_to_nothing_off_the_clock_is_no_note() -> None:
    assert notes(throttle_power_cap=0.87, clock_mhz=1956.0) == []


def test_memory_that_is_not_torchs() -> None:
    (note,) = notes(memory={**MEMORY, "free_bytes": MEMORY["free_bytes"] - (8 << 30)})
    assert note.startswith("8.7 GiB of the device's memory was held outside")


@pytest.mark.parametrize(
    ("seen", "times"),
    [
        ({"throttle_power_cap": 0.5, "clock_mhz": 1500.0}, 1.32),
        ({"throttle_power_cap": 0.5, "clock_mhz": 1970.0}, 1.0),
        ({"clock_mhz": 1500.0}, 1.0),  # without a reason: the clocks of an idle device
        ({"throttle_power_cap": 0.5, "clock_mhz": 0.0}, 1.0),
    ],
)
def test_how_much_slower_the_clock_was(seen: dict[str, float], times: float) -> None:
    assert held_back(Nvml(**{**QUIET, **seen})) == pytest.approx(times)
    assert held_back(Nvml()) == 1.0
