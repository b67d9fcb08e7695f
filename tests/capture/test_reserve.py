"""Memory that a recording finds, so that the script's tensors keep theirs."""

from __future__ import annotations

import subprocess
import sys

import pytest

from warpline.capture.runner.windows.reserve import is_missed

#: Blocks of a tensor's size that do not find the memory of those before.
CODE = """
import ctypes
from warpline.capture.runner.device.memory import new_pages
from warpline.capture.runner.windows.reserve import Reserve

library = ctypes.CDLL(None)
library.malloc.restype = ctypes.c_void_p

def touched():
    began = new_pages()
    for _ in range(300):
        ctypes.memset(library.malloc(98304), 1, 98304)
    return new_pages() - began

reserve = Reserve()
plain = touched()
reserve.take()
print(plain, touched())
reserve.give_back()
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only taken there")
def test_blocks_that_follow_are_not_new_to_the_system() -> None:
    said = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True).stdout
    plain, reserved = map(int, said.split())
    assert plain > 5000
    assert reserved < 500


def test_a_script_that_touches_new_memory_anyway_is_recorded_so() -> None:
    assert is_missed(3.0, 5e6)
    assert not is_missed(17_000.0, 30e6)
