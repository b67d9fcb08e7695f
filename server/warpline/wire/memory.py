"""The free memory of the host."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

SYSTEM, GROUPS, MOUNT = Path("/proc/meminfo"), Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")
#: The files of a control group that say its limit and its use, and the entry of ``memory.stat`` with cached
#: files that go when memory is short: of version 2 and of version 1.
_FILES = {
    "": ("memory.max", "memory.current", "inactive_file"),
    "memory": ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}


def free_bytes() -> int | None:
    """What the machine has available, or less where a container's limit, or that of a group around it, leaves
    less. None where the system does not say."""
    available = _entry(SYSTEM, "MemAvailable:")
    if available is None:
        return None
    return max(0, min([available * 1024, *_left()]))


def _left() -> Iterator[int]:
    for folder, (limit, used, cached) in _groups():
        try:
            most, now = (int((folder / name).read_text(encoding="ascii")) for name in (limit, used))
        except (OSError, ValueError):  # no such file, or "max"
            continue
        yield most - now + (_entry(folder / "memory.stat", cached) or 0)


def _groups() -> Iterator[tuple[Path, tuple[str, str, str]]]:
    """The control groups of this process and their parents. In a container the topmost is the container's."""
    for line in _lines(GROUPS):
        _, _, rest = line.partition(":")
        kinds, _, path = rest.partition(":")
        for kind in kinds.split(","):
            if kind in _FILES:
                top = MOUNT / kind
                own = top / path.lstrip("/")
                for folder in [own, *own.parents]:
                    yield folder, _FILES[kind]
                    if folder == top:
                        break


def _entry(file: Path, name: str) -> int | None:
    return next((int(words[1]) for words in map(str.split, _lines(file)) if words[:1] == [name]), None)


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8").split("\n")
    except OSError:
        return []
