"""What an interpreter and this machine can measure. Starts the interpreter, runs no user code."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import msgspec

from warpline import bundled
from warpline.capture import interpreter
from warpline.model.problem import Problem
from warpline.wire.run import Request

_PROBE = Path(__file__).parent / "runner" / "probe.py"
_LIMIT_S = 120.0
#: Where NVIDIA's installers put Nsight Compute, below ``/``; the last in order of name is the newest.
_NSIGHT = (
    "opt/nvidia/nsight-compute/*/ncu",
    "usr/local/cuda*/bin/ncu",
    "usr/local/NVIDIA-Nsight-Compute*/ncu",
)


@dataclass(frozen=True, slots=True)
class Gpu:
    name: str
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class Interpreter:
    """What ``runner/probe.py`` found out inside the interpreter."""

    executable: str
    python: str
    monitoring: bool  # sys.monitoring is there (3.12 and later)
    torch: str | None
    problem: str | None  # why torch, or its device, cannot be used
    devices: tuple[Gpu, ...]
    activities: tuple[str, ...]  # of torch.profiler: CPU, CUDA, XPU…
    kernels_seen: bool | None  # a kernel launched under the profiler was seen; None: no device to try on
    triton: str | None


def ask(request: Request) -> Interpreter:
    """Start the interpreter that ``request`` would run in. Raises Problem when it does not answer."""
    python = interpreter.find(request)
    try:
        done = subprocess.run(
            [python, str(_PROBE)],
            env={**os.environ, **request.environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_LIMIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Problem(f"{python} cannot be started: {error}") from None
    try:
        return msgspec.json.decode(done.stdout.splitlines()[-1], type=Interpreter)
    except (IndexError, msgspec.MsgspecError):
        why = done.stderr.decode(errors="replace").strip().splitlines()
        raise Problem(f"{python} is not a usable Python: {why[-1] if why else 'no answer'}") from None


def nvidia_device() -> bool:
    """Whether the machine has an NVIDIA device, even if torch cannot use it."""
    return Path("/dev/nvidiactl").exists() or Path("/dev/dxg").exists()


def counters_restricted() -> bool | None:
    """Whether only root may read hardware counters (``ERR_NVGPUCTRPERM``); None if unknown."""
    try:
        lines = Path("/proc/driver/nvidia/params").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    values = dict(line.split(":", 1) for line in lines if ":" in line)
    setting = values.get("RmProfilingAdminOnly", "").strip()
    return setting == "1" if setting else None


def nsight_compute() -> Path | None:
    """``ncu``, from the PATH or where NVIDIA's installers put it."""
    found = shutil.which("ncu")
    if found:
        return Path(found)
    for pattern in _NSIGHT:
        runnable = [path for path in sorted(Path("/").glob(pattern)) if os.access(path, os.X_OK)]
        if runnable:
            return runnable[-1]
    return None


def sampler() -> str:
    """Path of py-spy: bundled with the ``.vsix``, beside our interpreter or on the PATH; "" without one."""
    beside = Path(sys.executable).with_name("py-spy")
    own = bundled.program("py-spy") or (str(beside) if beside.is_file() else "")
    return own or shutil.which("py-spy") or ""


def shared_memory_bytes() -> int | None:
    """Size of ``/dev/shm`` in bytes; loader workers pass batches through it. None if there is none."""
    try:
        about = os.statvfs("/dev/shm")
    except (OSError, AttributeError):
        return None
    return about.f_frsize * about.f_blocks
