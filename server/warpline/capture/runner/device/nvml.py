"""The driver's readings of the GPU in the timing window, from NVML through ctypes."""

from __future__ import annotations

import ctypes
import threading
import time
from types import ModuleType

from ....wire.facts import Nvml
from . import kinds

INTERVAL_S = 0.1
#: NVML's utilisation is itself a mean, of up to the last second: earlier ones refer to the time before.
SETTLED_S = 1.0
_THROTTLES = {
    0x4: "power_cap", 0x8: "hardware_slowdown", 0x20: "thermal_software", 0x40: "thermal_hardware",
    0x80: "power_brake",
}  # fmt: skip


class _Utilisation(ctypes.Structure):
    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


class _Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class NvmlWatch:
    """``start()`` and ``stop()`` around the window; ``facts()`` afterwards. Empty without NVML."""

    def __init__(self, torch: ModuleType) -> None:
        self.samples: list[dict[str, float]] = []
        self.began = 0.0
        self.done = threading.Event()
        self.thread: threading.Thread | None = None
        try:
            self.library = ctypes.CDLL("libnvidia-ml.so.1")
            self.device = self._open(torch)
        except (OSError, AttributeError, RuntimeError):
            self.device = None

    def _open(self, torch: ModuleType) -> ctypes.c_void_p | None:
        if self.library.nvmlInit_v2() != 0:
            return None
        handle = ctypes.c_void_p()
        identity = kinds.used(torch).identity()
        by_uuid = self.library.nvmlDeviceGetHandleByUUID
        if identity is not None and by_uuid(identity.encode(), ctypes.byref(handle)) == 0:
            return handle
        only = torch.cuda.device_count() == 1 and self._count() == 1
        if only and self.library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(handle)) == 0:
            return handle
        return None

    def _count(self) -> int:
        number = ctypes.c_uint()
        return number.value if self.library.nvmlDeviceGetCount_v2(ctypes.byref(number)) == 0 else 0

    def start(self) -> None:
        """Read in a thread until ``stop``. Nothing happens where the driver's library is missing."""
        if self.device is None:
            return
        self.began = time.monotonic()
        self.thread = threading.Thread(target=self._run, name="warpline-nvml", daemon=True)
        self.thread.start()

    def stop(self) -> None:
        """End the thread, after one last reading."""
        if self.thread is not None:
            self.done.set()
            self.thread.join()
            self.thread = None
            self.samples.append(self._sample())

    def _run(self) -> None:
        while not self.done.wait(INTERVAL_S):
            self.samples.append(self._sample())

    def _sample(self) -> dict[str, float]:
        library, device = self.library, self.device
        sample = {}
        utilisation, number, large = _Utilisation(), ctypes.c_uint(), ctypes.c_ulonglong()
        settled = time.monotonic() - self.began >= SETTLED_S
        if settled and library.nvmlDeviceGetUtilizationRates(device, ctypes.byref(utilisation)) == 0:
            sample["utilisation_percent"] = utilisation.gpu
        for name, domain in (("clock_mhz", 1), ("memory_clock_mhz", 2)):
            if library.nvmlDeviceGetClockInfo(device, domain, ctypes.byref(number)) == 0:
                sample[name] = number.value
        if library.nvmlDeviceGetPowerUsage(device, ctypes.byref(number)) == 0:
            sample["power_w"] = number.value / 1000
        if library.nvmlDeviceGetTemperature(device, 0, ctypes.byref(number)) == 0:
            sample["temperature_c"] = number.value
        if library.nvmlDeviceGetCurrentClocksThrottleReasons(device, ctypes.byref(large)) == 0:
            for bit, name in _THROTTLES.items():
                sample["throttle_" + name] = 1.0 if large.value & bit else 0.0
        return sample

    def facts(self) -> Nvml:
        """The readings of the window. Empty without NVML; without utilisation in a short window."""
        found: dict[str, float] = {}
        if self.device is None:
            return Nvml()
        for name in {name for sample in self.samples for name in sample}:
            values = [sample[name] for sample in self.samples if name in sample]
            found[name] = sum(values) / len(values)
        found["samples"] = len(self.samples)
        found["utilisation_samples"] = sum("utilisation_percent" in sample for sample in self.samples)
        number, memory = ctypes.c_uint(), _Memory()
        if self.library.nvmlDeviceGetMaxClockInfo(self.device, 1, ctypes.byref(number)) == 0:
            found["max_clock_mhz"] = number.value
        if self.library.nvmlDeviceGetMemoryInfo(self.device, ctypes.byref(memory)) == 0:
            found["memory_used_bytes"], found["memory_total_bytes"] = memory.used, memory.total
        found.update(self._others())
        return Nvml(**found)

    def _others(self) -> dict[str, float]:
        """Processes on the device: ours is one, more are others that share it."""
        count = ctypes.c_uint(0)
        call = getattr(self.library, "nvmlDeviceGetComputeRunningProcesses_v3", None)
        if call is None:
            return {}
        status = call(self.device, ctypes.byref(count), None)
        enough, too_small = 0, 7
        if status not in (enough, too_small):
            return {}
        return {"other_processes": max(0, count.value - 1)}
