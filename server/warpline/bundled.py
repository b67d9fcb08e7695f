"""The packages and py-spy that a ``.vsix`` contains in ``bundled/libs``, next to the server's folder."""

from __future__ import annotations

import os
import sys
from pathlib import Path

_SERVER = Path(__file__).parents[1]
_LIBS = _SERVER.parent / "bundled" / "libs"


def path() -> list[str]:
    """What the path of another process of ours must begin with: this package, and the packages it came with.

    The bundled ones only where this process uses them: in a clone, they may lie there since a ``.vsix``
    was made.
    """
    return [str(_SERVER), *([str(_LIBS)] if str(_LIBS) in sys.path else ())]


def program(name: str) -> str:
    """The path of a program that the ``.vsix`` carries; "" where there is none that can be run."""
    found = _LIBS / "bin" / name
    return str(found) if str(_LIBS) in sys.path and os.access(found, os.X_OK) else ""
