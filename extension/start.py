"""Runs Warpline from the extension's folder: ``python -I extension/start.py COMMAND …``.

The packages that the ``.vsix`` carries come before those of the interpreter, which may be any Python that
they fit.
"""

import sys
from pathlib import Path

_EXTENSION = Path(__file__).absolute().parents[1]
_LIBS = _EXTENSION / "bundled" / "libs"
sys.path[:0] = [str(_EXTENSION / "server"), *([str(_LIBS)] if _LIBS.is_dir() else ())]

from warpline.__main__ import main  # noqa: E402 - only now can it be found

if __name__ == "__main__":
    sys.exit(main())
