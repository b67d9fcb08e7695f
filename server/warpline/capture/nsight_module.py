"""Finds ``ncu_report``, NVIDIA's Python module that reads Nsight Compute's reports.

Each installation of Nsight Compute has it in ``extras/python``. The ``ncu`` on the PATH is often not in
its installation: CUDA's ``bin/ncu`` is a shell script that starts the one in ``/opt/nvidia``. NVIDIA also
publishes the module on PyPI, as ``ncu-report``.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from warpline.model.problem import Problem

_MODULE = Path("extras", "python")
#: Installations, below ``/``: NVIDIA's packages, the CUDA toolkit's, the ``.run`` installer's, Linux
#: distributions' own.
_INSTALLATIONS = (
    "opt/nvidia/nsight-compute/*",
    "usr/local/cuda*/nsight-compute*",
    "usr/local/NVIDIA-Nsight-Compute*",
    "usr/lib/nsight-compute",
    "opt/cuda/nsight_compute",
)
#: A longer file is not taken for a wrapper script.
_WRAPPER_BYTES = 1 << 16
_VERSION = re.compile(r"\b(20\d\d\.\d+\.\d+)")
_VERSION_LIMIT_S = 30.0


def find(ncu: Path, root: Path = Path("/")) -> Path | None:
    """The folder to import ``ncu_report`` from; None when this interpreter has the module itself.

    Looked for, in this order: the installation that ``ncu`` is in, those that a wrapper script names,
    the others on the machine (the version of ``ncu`` first, then the newest), the interpreter's own
    packages. Raises Problem, which names the places, when it is in none of them.
    """
    version = _version(ncu)
    places = list(dict.fromkeys(_places(ncu.resolve(), version, root)))
    for place in places:
        if _has_module(place / _MODULE):
            return place / _MODULE
    if importlib.util.find_spec("ncu_report") is not None:
        return None
    looked = ", ".join(str(place / _MODULE) for place in places)
    raise Problem(
        f"Nsight Compute's Python module (ncu_report) is not in {looked}: install the whole "
        "package, or NVIDIA's ncu-report from PyPI in Warpline's environment"
    )


def _has_module(folder: Path) -> bool:
    """Whether ``folder`` has the module: one file, or a package from version 2026 on."""
    return (folder / "ncu_report.py").is_file() or (folder / "ncu_report" / "__init__.py").is_file()


def _places(ncu: Path, version: str, root: Path) -> Iterator[Path]:
    """Folders that may be an installation, likely ones first."""
    yield ncu.parent
    # The program itself lies in INSTALLATION/target/PLATFORM.
    if ncu.parent.parent.name == "target":
        yield ncu.parent.parent.parent
    yield from _named_by_wrapper(ncu)
    found = [path for pattern in _INSTALLATIONS for path in root.glob(pattern)]
    for variable in ("CUDA_HOME", "CUDA_PATH", "CONDA_PREFIX"):
        if home := os.environ.get(variable):
            found += Path(home).glob("nsight-compute*")
    yield from sorted(found, key=lambda path: (_of(path) == version, _numbers(path)), reverse=True)


def _named_by_wrapper(ncu: Path) -> Iterator[Path]:
    """Installations that a shell script names, as ``/opt/nvidia/nsight-compute/2025.3.1/ncu``."""
    try:
        if ncu.stat().st_size > _WRAPPER_BYTES:
            return
        text = ncu.read_bytes().decode(errors="replace")
    except OSError:
        return
    if not text.startswith("#!"):
        return
    for path in re.findall(r"/[\w./+-]*", text):
        named = Path(path)
        yield from (folder for folder in (named, *named.parents) if "nsight-compute" in folder.as_posix())


def _version(ncu: Path) -> str:
    """``2025.3.1``, as ``ncu --version`` says; empty when it does not."""
    try:
        said = subprocess.run(
            [str(ncu), "--version"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_VERSION_LIMIT_S,
            check=False,
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
    found = _VERSION.findall(said.decode(errors="replace"))
    return found[-1] if found else ""


def _of(installation: Path) -> str:
    found = _VERSION.search(installation.name)
    return found[1] if found else ""


def _numbers(installation: Path) -> tuple[int, ...]:
    return tuple(int(part) for part in _of(installation).split(".") if part)
