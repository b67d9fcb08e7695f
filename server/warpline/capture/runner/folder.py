"""Write the run folder; the manifest last, by rename."""

from __future__ import annotations

import json
import math
import os
from dataclasses import is_dataclass
from typing import Any

from ...wire.run import MANIFEST


def write(path: str, name: str, value: Any) -> None:
    """A part of the run as JSON. NaN and infinities become null. Raises OSError."""
    with open(os.path.join(path, name), "w", encoding="utf-8") as file:
        json.dump(finite(value), file)


def write_bytes(path: str, name: str, data: bytes) -> None:
    """A part of the run as it is. Raises OSError."""
    with open(os.path.join(path, name), "wb") as file:
        file.write(data)


def write_whole(path: str, name: str, value: Any) -> None:
    """Write a file and rename it: a reader finds the old content or the new, never a part."""
    write(path, "." + name, value)
    os.replace(os.path.join(path, "." + name), os.path.join(path, name))


def write_manifest(path: str, manifest: dict[str, Any]) -> None:
    """The manifest, which makes the folder a run: written beside it, synced to disk, then renamed. Raises
    OSError."""
    scratch = os.path.join(path, ".manifest")
    with open(scratch, "w", encoding="utf-8") as file:
        json.dump(finite(manifest), file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(scratch, os.path.join(path, MANIFEST))


def finite(value: Any) -> Any:
    """``value`` as JSON can hold it: numbers that are not finite become None, unknown facts go."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if is_dataclass(value):
        return {name: finite(item) for name, item in vars(value).items() if item is not None}
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    return value
