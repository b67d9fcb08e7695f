"""Run folders: where they lie, which is the newest, and reading and writing their parts.

A folder is a run once ``manifest.json`` lies in it (written last, by rename). Whatever is read is
checked against its type; a malformed part is a :class:`Problem`, never a crash: a run may come
from a stranger.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from warpline import packed
from warpline.model.kernel import KERNEL_FORMAT, KernelInside
from warpline.model.problem import Problem
from warpline.wire.run import FACTS, MANIFEST, RUN_FORMAT, SOURCES, TRACE, Facts, Manifest
from warpline.wire.trend import TREND, Trend

_WORTH_PACKING = 1 << 16  # bytes

T = TypeVar("T")

#: What lies in the top folder of a project.
_PROJECT_MARKS = (".git", "pyproject.toml")


def runs_folder(cwd: Path) -> Path:
    """``<cwd>/.warpline/runs``, made when missing, with a ``.gitignore`` that hides all of it.

    Raises Problem (status 2) where it cannot be written.
    """
    folder = cwd / ".warpline" / "runs"
    stay_inside(folder, cwd)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (
            contextlib.suppress(FileExistsError),
            (folder.parent / ".gitignore").open("x", encoding="utf-8") as ignore,
        ):
            ignore.write("*\n")
    except OSError as error:
        raise Problem(
            f"cannot write to {folder}: {_reason(error)} (use --run-dir to put runs elsewhere)"
        ) from None
    return folder


def stay_inside(folder: Path, cwd: Path) -> None:
    """Raise Problem (status 2) where links lead ``folder`` out of the project around ``cwd``: a project
    from a stranger may bring such links.
    """
    above = (at for at in (cwd, *cwd.parents) if any((at / mark).exists() for mark in _PROJECT_MARKS))
    top = next(above, cwd)
    if not Path(os.path.realpath(folder)).is_relative_to(os.path.realpath(top)):
        raise Problem(
            f"{folder} is a link that leads out of {top}: nothing is written there "
            "(use --run-dir to put runs elsewhere)"
        )


def nearest(cwd: Path) -> Path:
    """Where runs are looked for: ``<cwd>/.warpline/runs``, else, inside a project, that of the nearest
    folder above up to the project's own; the first, where there is none."""
    above = (cwd, *cwd.parents)
    tops = (at for at, folder in enumerate(above) if any((folder / mark).exists() for mark in _PROJECT_MARKS))
    for folder in above[: next(tops, 0) + 1]:
        place = folder / ".warpline" / "runs"
        if any(is_run(path) for path in place.glob("*")):
            return place
    return cwd / ".warpline" / "runs"


def new_run(folder: Path) -> Path:
    """A path in ``folder`` for the next run: nothing is there yet, and names sort by time."""
    name = datetime.now().strftime("%Y%m%d-%H%M%S-%f")[:-3]
    path, number = folder / name, 1
    while path.exists():
        path, number = folder / f"{name}-{number}", number + 1
    return path


def rank_folders(run: Path) -> list[Path]:
    """What the run's other ranks on this machine left, in their order; none for a run of one process."""
    folders = [folder for folder in (run / "ranks").glob("*") if folder.name.isdecimal()]
    return sorted(folders, key=lambda folder: int(folder.name))


def is_run(path: Path) -> bool:
    """Whether a folder is a complete run: its manifest is written last."""
    return (path / MANIFEST).is_file()


def newest(folder: Path, script: str | Path | None = None) -> Path:
    """The newest complete run in ``folder``, of ``script`` only when that is given.

    Raises Problem when there is none. Runs that cannot be read are passed over.
    """
    wanted = os.path.realpath(script) if script is not None else None
    try:
        names = sorted((entry.name for entry in os.scandir(folder)), reverse=True)
    except OSError:
        names = []
    for name in names:
        run = folder / name
        if not is_run(run):
            continue
        if wanted is None:
            return run
        try:
            if os.path.realpath(manifest(run).script) == wanted:
                return run
        except Problem:
            continue
    of_script = f" of {script}" if script is not None else ""
    raise Problem(f"no run{of_script} in {folder}: make one with `warpline profile`")


def manifest(run: Path) -> Manifest:
    """The manifest of a run folder. Raises Problem if it cannot be read, or is of a newer format."""
    found = read(run, MANIFEST, Manifest)
    if found.format > RUN_FORMAT or found.format < 1:
        raise Problem(
            f"{run} has run format {found.format}; this Warpline reads up to {RUN_FORMAT}: update it"
        )
    return found


def facts(run: Path) -> Facts:
    """The facts of a run folder. Raises Problem."""
    return read(run, FACTS, Facts)


def sources(run: Path) -> dict[str, str]:
    """Path of each user file to its text as it was when the script ran. Raises Problem."""
    return read(run, SOURCES, dict[str, str])


def trend(run: Path) -> Trend | None:
    """What was timed after the capture; None where nothing was, or it cannot be read."""
    try:
        return read(run, TREND, Trend)
    except Problem:
        return None


def kernels(run: Path) -> tuple[KernelInside, ...]:
    """What ``warpline kernel`` found out about kernels of this run, by their names."""
    found = []
    for path in sorted(run.glob("kernel-*.json")):
        try:
            inside = read(run, path.name, KernelInside)
        except Problem:
            continue
        if inside.format == KERNEL_FORMAT:
            found.append(inside)
    return tuple(sorted(found, key=lambda inside: inside.name))


def keep_kernel(run: Path, inside: KernelInside) -> Path:
    """Leave ``inside`` in the run, in place of what was kept of that kernel. Raises Problem."""
    digest = hashlib.sha256(inside.name.encode()).hexdigest()[:16]
    return write_json(run, f"kernel-{digest}.json", inside)


def part(run: Path, name: str) -> Path:
    """Where ``name`` lies in the run: packed (``name.gz``), or plain in a run that is just made, or old."""
    small = run / f"{name}.gz"
    return small if small.is_file() else run / name


def pack(run: Path) -> None:
    """Compress what is large in ``run`` and in the folders of its ranks. A reader finds the one or the other.

    What cannot be written stays as it is: a full disk costs no run.
    """
    for folder in (run, *rank_folders(run)):
        for path in (folder / TRACE, *folder.glob("*.bin")):
            _pack(path)


def _pack(path: Path) -> None:
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        if path.stat().st_size < _WORTH_PACKING:
            return
        with path.open("rb") as plain, packed.writing(scratch) as out:
            shutil.copyfileobj(plain, out, 1 << 20)
        scratch.replace(path.with_name(f"{path.name}.gz"))
        path.unlink()
    except OSError:
        scratch.unlink(missing_ok=True)


def read(run: Path, name: str, kind: type[T]) -> T:
    """``run/name`` as ``kind``. Raises Problem when it is missing or not what it should be."""
    path = run / name
    try:
        data = path.read_bytes()
    except OSError as error:
        if name == MANIFEST:
            raise Problem(f"{run} is not a run folder: it has no {MANIFEST}") from None
        raise Problem(f"cannot read {path}: {_reason(error)}") from None
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Problem(f"{path} is malformed: {error}") from None


def write_json(run: Path, name: str, value: Any) -> Path:
    """Write ``value`` as ``run/name``. Raises Problem."""
    return write(run / name, msgspec.json.encode(value))


def write(path: Path, content: bytes) -> Path:
    """Put ``content`` in the place of ``path``: a reader sees the old file or the new, never a part, and a
    link is replaced, not followed. Raises Problem."""
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        scratch.unlink(missing_ok=True)  # whatever lies there: a link would be followed
        scratch.write_bytes(content)
        scratch.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            scratch.unlink(missing_ok=True)
        raise Problem(f"cannot write {path}: {_reason(error)}") from None
    return path


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
