"""Whether a file is worth offering to profile: it, or the project around it, uses torch."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from warpline.lsp.state.results import changed

#: Packages that run on torch and are what a training script may import instead of it.
_PACKAGES = (
    "torch|torchvision|torchaudio|lightning|pytorch_lightning|transformers|accelerate|diffusers|timm|peft|trl|"
    "fastai|ultralytics|ignite"
)
_IMPORT = re.compile(rf"\s*(?:import|from)\s+(?:{_PACKAGES})\b")
_NAMED = re.compile(
    r"(?<![\w-])(?:torch|pytorch|lightning|pytorch-lightning|transformers)(?![\w-])", re.IGNORECASE
)
#: Where a project names what it needs.
_FILES = (
    "pyproject.toml",
    "requirements.txt",
    "environment.yml",
    "environment.yaml",
    "setup.py",
    "setup.cfg",
)
#: A longer file is not looked through to its end.
_MOST = 200_000
#: What is known of project folders: when its files were written, and whether they name torch.
Known = dict[Path, tuple[tuple[int, ...], bool]]


def in_file(lines: Sequence[str]) -> bool:
    """Whether the text imports torch, or a package that runs on it."""
    return any(("import " in line or "from " in line) and _IMPORT.match(line) for line in lines)


def in_project(folder: Path, kept: Known) -> bool:
    """Whether what the project says it needs has torch in it. Read again when one of the files changes;
    ``kept`` remembers the answers."""
    stamps = tuple(changed(folder / name) for name in _FILES)
    known = kept.get(folder)
    if known is None or known[0] != stamps:
        known = kept[folder] = stamps, any(_names_torch(folder / name) for name in _FILES)
    return known[1]


def _names_torch(path: Path) -> bool:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return _NAMED.search(file.read(_MOST)) is not None
    except OSError:
        return False
