"""How to start a process of our own: with this interpreter, and with the package that runs here."""

from __future__ import annotations

import sys

from warpline import bundled

_PATH = f"import sys; sys.path[:0] = {bundled.path()!r}; "
#: ``python -c START …`` is the command line of the package that runs here.
START = f"{_PATH}from warpline.__main__ import main; sys.exit(main())"


def command() -> list[str]:
    """The command line of a worker."""
    return [sys.executable, "-c", f"{_PATH}from warpline.lsp.worker.process import main; main()"]
