"""Samples of NVML, with the library played: what it says of too short a window is left out."""

from __future__ import annotations

import ctypes
import types

import pytest

from warpline.capture.runner.device import nvml


class Library:
    """Answers as NVML does: a status, and the figures where it was told to put them."""

    def nvmlDeviceGetUtilizationRates(self, device: object, out: object) -> int:
        out._obj.gpu = 80  # type: ignore[attr-defined]
        return 0

    def nvmlDeviceGetClockInfo(self, device: object, domain: int, out: object) -> int:
        out._obj.value = 1980 if domain == 1 else 3201  # type: ignore[attr-defined]
        return 0

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, device: object, out: object) -> int:
        out._obj.value = 0x4 | 0x1  # type: ignore[attr-defined]  # the power limit; and idle, which slows nothing
        return 0

    def nvmlDeviceGetComputeRunningProcesses_v3(self, device: object, count: object, out: None) -> int:
        count._obj.value = 2  # type: ignore[attr-defined]
        return 7  # there is no room for them

    def __getattr__(self, name: str) -> object:
        return lambda *arguments: 3  # not supported


@pytest.fixture
def sampler(monkeypatch: pytest.MonkeyPatch) -> nvml.NvmlWatch:
    monkeypatch.setattr(ctypes, "CDLL", lambda name: Library())
    monkeypatch.setattr(nvml.NvmlWatch, "_open", lambda self, torch: ctypes.c_void_p(1))
    return nvml.NvmlWatch(types.SimpleNamespace())


def test_a_short_window_has_clocks_but_no_utilisation(sampler: nvml.NvmlWatch) -> None:
    sampler.start()
    sampler.stop()
    facts = sampler.facts()
    assert facts.clock_mhz == 1980
    assert facts.throttle_power_cap == 1
    assert facts.throttle_thermal_hardware == 0
    assert facts.other_processes == 1
    assert facts.utilisation_samples == 0
    assert facts.utilisation_percent is None


def test_utilisation_counts_once_it_speaks_of_the_window(
    sampler: nvml.NvmlWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nvml, "SETTLED_S", 0.0)
    sampler.start()
    sampler.stop()
    facts = sampler.facts()
    assert facts.utilisation_percent == 80
    assert facts.utilisation_samples == facts.samples
    assert (facts.samples or 0) >= 1
