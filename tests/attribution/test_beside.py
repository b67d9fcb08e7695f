"""Work beside other work, also while Python ends."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from tests.conftest import environment
from warpline.attribution.beside import beside


def test_it_is_done_on_another_thread() -> None:
    with beside() as submit:
        found = submit(threading.current_thread)
        assert found.result() is not threading.current_thread()
        wrong = submit(int, "x")
        with pytest.raises(ValueError, match="'x'"):
            wrong.result()


def test_it_is_done_at_once_while_python_ends() -> None:
    script = (
        "import atexit; from warpline.attribution.beside import beside\n"
        "@atexit.register\n"
        "def last():\n"
        "    with beside() as submit: print(submit(max, 1, 2).result())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment(), capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "2\n", done.stderr
