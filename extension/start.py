"""Runs Warpline from the extension's folder: ``python -I extension/start.py COMMAND …``.

The packages that the ``.vsix`` carries come before those of the interpreter, which may be any Python that they fit.
"""

import os
import sys

_EXTENSION = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_LIBS = os.path.join(_EXTENSION, "bundled", "libs")
sys.path[:0] = [os.path.join(_EXTENSION, "server"), *([_LIBS] if os.path.isdir(_LIBS) else ())]

from warpline.__main__ import main  # noqa: E402 - only now can it be found

if __name__ == "__main__":
    sys.exit(main())
