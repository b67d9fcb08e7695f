"""Python frames by their names in traces, "folder/file.py(12): function", and whether they are the user's."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from warpline.trace.columns import Ints

FRAME = re.compile(r"(?P<file>.+?)\((?P<line>\d{1,9})\): (?P<function>.+)$")
#: Packages used by almost every training script. torch cuts "site-packages/" off, so only the name identifies
#: them.
_KNOWN = (
    "torch torchvision torchaudio torchtext numpy scipy pandas PIL sklearn matplotlib tqdm transformers "
    "datasets accelerate diffusers peft timm lightning pytorch_lightning lightning_fabric deepspeed apex "
    "triton xformers flash_attn einops wandb tensorboard ray mmcv mmengine huggingface_hub tokenizers "
    "safetensors fsspec"
)
PACKAGES = frozenset(_KNOWN.split(" "))
INSTALLED = ("site-packages", "dist-packages", "lib/python", "<")


class Frames:
    """Numbers the user's frames as ``Locations`` does: entry 0 means "not in the user's files"."""

    def __init__(self) -> None:
        self.files: dict[str, int] = {}
        self.functions: dict[str, int] = {}
        self.locations: dict[tuple[int, int, int], int] = {(-1, 0, -1): 0}
        self.script = ""

    def of_names(self, names: Sequence[str]) -> Ints:
        """Location of each frame's name; every distinct name is parsed once."""
        known = {name: self._location(name) for name in dict.fromkeys(names)}
        return np.fromiter(map(known.__getitem__, names), np.int64, len(names))

    def of_stacks(self, stacks: Sequence[str]) -> Ints:
        """Location of the user's innermost frame in each "a;b;c" (innermost first)."""
        known = {
            stack: next(filter(None, map(self._location, stack.split(";"))), 0)
            for stack in dict.fromkeys(stacks)
        }
        return np.fromiter(map(known.__getitem__, stacks), np.int64, len(stacks))

    def sources(self) -> dict[str, str]:
        """Present texts of the Python files that exist on this machine.

        Only Python files are read: a stranger's trace could name any file, and the report shows lines of it.
        """
        found = {}
        for file in self.files:
            if (text := source_of(file)) is not None:
                found[file] = text
        return found

    def _location(self, name: str) -> int:
        match = FRAME.match(name.strip())
        if match is None or not is_users(match["file"]):
            return 0
        file = _resolved(match["file"])
        if match["function"] == "<module>":
            self.script = self.script or file
        return self.number(file, int(match["line"]), match["function"])

    def number(self, file: str, line: int, function: str) -> int:
        """The location's number."""
        at = self.files.setdefault(file, len(self.files))
        of = self.functions.setdefault(function, len(self.functions))
        return self.locations.setdefault((at, line, of), len(self.locations))

    def place(self, number: int) -> tuple[str, int, str]:
        """File, line and function of the location ``number``."""
        file, line, function = list(self.locations)[number]
        return list(self.files)[file], line, list(self.functions)[function]


def source_of(file: str) -> str | None:
    """The text of a Python file on this machine; None if there is none or it cannot be read."""
    path = Path(file)
    try:
        if path.suffix != ".py" or not path.is_file():
            return None
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:  # no permission, or the name is too long
        return None


def _resolved(file: str) -> str:
    """The full path of ``file`` if it exists on this machine, else ``file``."""
    path = Path(file)
    try:
        return str(path.resolve()) if path.is_file() else file
    except OSError:
        return file


def is_users(file: str) -> bool:
    """Whether a file is probably the user's: not Python's, not of a well-known package, and not below a path
    of installed packages."""
    if any(part in file for part in INSTALLED):
        return False
    first = file.replace("\\", "/").lstrip("/").split("/")[0]
    module = first.removesuffix(".py")
    return module not in PACKAGES and module not in sys.stdlib_module_names
