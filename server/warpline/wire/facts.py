"""What the runner saw of the process and of its device, beside the trace: parts of ``facts.json``.

None is what is not known, and is absent from the file. A run from before a field has None there too.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Flags:
    """Settings of torch as the script left them, and what one step ran under."""

    allow_tf32: bool | None = None  # float32 matrix products
    float32_matmul_precision: str | None = None  # "highest" | "high" | "medium"
    cudnn_allow_tf32: bool | None = None  # float32 convolutions; torch's default is that they may
    cudnn_benchmark: bool | None = None
    deterministic: bool | None = None
    anomaly_mode: bool | None = None
    cpu_count: int | None = None  # processor cores that the process may use
    threads: int | None = None  # of torch's operators
    autocast: bool | None = None  # something in the surveyed step ran under it
    autocast_dtype: str | None = None  # "bfloat16" | "float16" | "float32", which changes nothing
    grad_enabled_in_step: bool | None = None
    surveyed_ms: float | None = None  # length of the step that was surveyed; what surveys cost slows it
    loss_not_finite_at: int | None = None  # number of the first backward pass with a loss that was not finite

    @property
    def spare_cores(self) -> int | None:
        """Cores that none of the operators' threads takes, where the CPU is the device: each has one, also
        between two operators, where it spins. None where that is unknown."""
        if self.cpu_count is None or self.threads is None:
            return None
        return max(0, int(self.cpu_count) - int(self.threads))

    @property
    def cores_of_workers(self) -> int | None:
        """Cores that loader workers can use while the step waits for them. A single thread of the operators
        sleeps then, and does not spin, so its core is one of them."""
        return self.cpu_count if self.threads == 1 else self.spare_cores


@dataclass(frozen=True)
class Memory:
    """Over the timing window: of the current device, else of the process."""

    peak_bytes: float | None = None
    growth_bytes_per_step: float | None = None
    free_bytes: float | None = None  # of the host: at the process's peak, and within a container's limit
    reserved_bytes: float | None = None  # these and the next: with a device only
    allocated_bytes: float | None = None
    total_bytes: float | None = None
    alloc_retries: float | None = None
    new_pages_per_step: float | None = None  # these: without a device only; pages touched for the first time
    page_ns: float | None = None  # what the system took for such a page


@dataclass(frozen=True)
class Nvml:
    """Means over the timing window, from the driver. ``throttle_…`` are shares of the window, 0 to 1."""

    samples: float | None = None
    utilisation_samples: float | None = None  # of them those that refer to the window alone
    utilisation_percent: float | None = None
    clock_mhz: float | None = None
    max_clock_mhz: float | None = None
    memory_clock_mhz: float | None = None
    power_w: float | None = None
    temperature_c: float | None = None
    throttle_power_cap: float | None = None
    throttle_hardware_slowdown: float | None = None
    throttle_thermal_software: float | None = None
    throttle_thermal_hardware: float | None = None
    throttle_power_brake: float | None = None
    memory_used_bytes: float | None = None
    memory_total_bytes: float | None = None
    other_processes: float | None = None


@dataclass(frozen=True)
class Cores:
    """Processor cores in the timing window: its length, the time of them that the process used, and how long
    threads were ready to run and had none. What is divided among threads is over when the last one is."""

    window_ns: int | None = None
    used_ns: int | None = None
    queued_ns: int | None = None  # of the thread that makes the steps
    helper_queued_ns: int | None = None  # of the other thread that waited longest


@dataclass(frozen=True)
class MeasuredPeaks:
    """The best that matrix products (operations per second, by precision) and a copy reached."""

    fp32: float | None = None
    tf32: float | None = None
    bf16: float | None = None
    fp16: float | None = None
    fp64: float | None = None
    bytes_per_s: float | None = None
