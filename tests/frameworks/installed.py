"""Whether the frameworks are there that tests/frameworks runs: status 1 and one line where some are missing.

    python tests/frameworks/installed.py [PYTHON]

``WARPLINE_FRAMEWORKS`` names another interpreter that has them, and torch.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

PYTHON = os.environ.get("WARPLINE_FRAMEWORKS", sys.executable)
WANTED = ("transformers", "accelerate", "pytorch_lightning", "diffusers", "timm", "peft")
OPTIONAL = ("timm", "peft")  # only the tests of that name need them
_ASK = "import importlib.util, sys; print(*(n for n in sys.argv[1:] if importlib.util.find_spec(n) is None))"


def missing(python: str = PYTHON) -> list[str]:
    """Those of ``WANTED`` that ``python`` lacks."""
    if python == sys.executable:
        return [name for name in WANTED if importlib.util.find_spec(name) is None]
    asked = subprocess.run([python, "-c", _ASK, *WANTED], capture_output=True, text=True, timeout=60)
    return asked.stdout.split() if asked.returncode == 0 else list(WANTED)


def words(lacking: list[str]) -> str:
    """For a person who ran the tests."""
    if set(lacking) <= set(OPTIONAL):
        return f"not installed, and its tests are left out: {' '.join(lacking)}"
    return f"frameworks not installed: {' '.join(lacking)}; get them with: make frameworks"


if __name__ == "__main__":
    lacking = missing(*sys.argv[1:])
    if lacking:
        sys.exit(words(lacking))
