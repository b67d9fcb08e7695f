"""Show what this machine can measure, and how to get what is missing. Runs none of your code."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from warpline import __version__
from warpline.commands import target
from warpline.model.problem import Problem
from warpline.view import units
from warpline.wire import processors

if TYPE_CHECKING:
    from warpline.capture.probe import Interpreter

_MARKS = {"yes": "✔", "part": "▲", "no": "✖"}
_SMALL_SHARED_MEMORY = 1 << 30


class Check(NamedTuple):
    answer: str  # "yes" | "part" | "no"
    what: str
    found: str
    remedy: str = ""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--python", metavar="PATH", help="the interpreter that would run the script")


def run(options: argparse.Namespace) -> int:
    checks = [_own(), *_target(options.python), _nsight(), _workers(), _folder()]
    from warpline.terminal.console import paged

    with paged() as out:
        for check in checks:
            out.print(f"{_MARKS[check.answer]} {check.what}: {check.found}", soft_wrap=True)
            if check.remedy:
                out.print(f"    {check.remedy}", soft_wrap=True)
    # Status 2 says that no profile can be made here; what is only limited is not a failure.
    return 2 if any(check.answer == "no" for check in checks) else 0


def _own() -> Check:
    python = ".".join(map(str, sys.version_info[:3]))
    return Check("yes", "Warpline", f"{__version__}, in Python {python} at {sys.executable}")


def _target(python: str | None) -> Iterator[Check]:
    from warpline import project
    from warpline.capture import probe
    from warpline.wire.run import Request

    cwd = Path.cwd()
    named = target.absolute(python) if python else project.settings(cwd).python
    try:
        found = probe.ask(Request(cwd=str(cwd), python=named))
    except Problem as problem:
        yield Check(
            "no", "your interpreter", str(problem), ("choose an interpreter with torch: --python PATH")
        )
        return
    yield Check("yes", "your interpreter", f"Python {found.python} at {found.executable}")
    yield _torch(found)
    if found.torch is None:
        return
    if found.monitoring:
        yield Check("yes", "exact lines", "sys.monitoring")
    else:
        yield Check(
            "yes",
            "exact lines",
            "a trace function, which makes the capture window slower (the step time is measured without it)",
            "Python 3.12 or later has sys.monitoring, which costs less",
        )
    yield _device(found, probe.nvidia_device())


def _torch(interpreter: Interpreter) -> Check:
    where = "choose an interpreter that has it: --python PATH"
    if interpreter.torch is None:
        return Check("no", "torch", interpreter.problem or "not there", where)
    release = tuple(int(part) for part in interpreter.torch.split("+")[0].split(".")[:2])
    if release < (2, 4):
        return Check("no", "torch", f"{interpreter.torch} is too old", "Warpline needs torch 2.4 or newer")
    return Check("yes", "torch", interpreter.torch)


def _device(interpreter: Interpreter, present: bool) -> Check:
    if not interpreter.devices:
        if not present:
            return Check("part", "GPU", "none; the CPU's operators are measured instead")
        why = interpreter.problem or "torch cannot use it"
        remedy = "compare the driver (nvidia-smi) with the CUDA that this torch was built for"
        return Check("part", "GPU", f"there is an NVIDIA device, but {why}", remedy)
    names = ", ".join(f"{gpu.name} ({units.size(gpu.memory_bytes)})" for gpu in interpreter.devices)
    if not interpreter.kernels_seen:
        remedy = "only one tool at a time can use CUPTI: stop other profilers (nsys, ncu, dcgm) and try again"
        return Check("no", "GPU", f"{names}; torch.profiler does not record its kernels", remedy)
    triton = "" if interpreter.triton else "; no Triton, so no torch.compile"
    return Check("yes", "GPU", f"{names}; kernels are recorded{triton}")


def _nsight() -> Check:
    from warpline.capture import nsight_module, probe

    what = "inside kernels (Nsight Compute)"
    if not probe.nvidia_device():
        return Check("part", what, "needs an NVIDIA GPU")
    ncu = probe.nsight_compute()
    if ncu is None:
        remedy = "install it with CUDA's packages (nsight-compute-…), or put ncu on the PATH"
        return Check("part", what, "ncu is not installed", remedy)
    if probe.counters_restricted() and os.geteuid() != 0:
        remedy = (
            "only root may read hardware counters here (ERR_NVGPUCTRPERM): run as root, in a "
            "container with --cap-add=SYS_ADMIN, or set NVreg_RestrictProfilingToAdminUsers=0 for "
            "the driver"
        )
        return Check("part", what, f"{ncu} is not permitted", remedy)
    try:
        nsight_module.find(ncu)
    except Problem as problem:
        return Check("part", what, str(ncu), str(problem))
    return Check("yes", what, str(ncu))


def _workers() -> Check:
    from warpline.capture import probe

    room = probe.shared_memory_bytes()
    count = processors.cores()
    cores = f"{count} core{'' if count == 1 else 's'}"
    if room is not None and room < _SMALL_SHARED_MEMORY:
        remedy = "loader workers need it to pass batches: docker run --shm-size=8g or --ipc=host"
        return Check("part", "loader workers", f"{cores}, {units.size(room)} in /dev/shm", remedy)
    return Check("yes", "loader workers", cores + (f", {units.size(room)} in /dev/shm" if room else ""))


def _folder() -> Check:
    cwd = Path.cwd()
    if os.access(cwd, os.W_OK):
        return Check("yes", "runs", str(cwd / ".warpline/runs"))
    return Check("part", "runs", f"{cwd} cannot be written", "profile with --run-dir DIR")
