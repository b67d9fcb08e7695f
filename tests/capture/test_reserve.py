"""Memory that a recording finds, so that the script's tensors keep theirs."""

from __future__ import annotations

import mmap
import subprocess
import sys

import pytest
import torch

from warpline.capture.runner.device import memory
from warpline.capture.runner.device.memory import MemoryWatch
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


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="pages are counted there")
def test_new_pages_are_counted_and_timed() -> None:
    """Of a step that takes new memory twice; on a device they are not what a step waits for."""
    watch = MemoryWatch(torch)
    watch.start()
    for _ in range(2):
        with mmap.mmap(-1, 8 << 20) as some:
            some.write(b"x" * (8 << 20))
    found = watch.stop(2)
    pages = (8 << 20) / mmap.PAGESIZE
    assert found.new_pages_per_step is not None
    assert found.page_ns is not None
    assert pages <= found.new_pages_per_step < 2 * pages + 1000
    assert 10 < found.page_ns < 1e6  # 250 to 2,200 were seen


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="pages are counted there")
def test_steps_without_new_pages_do_not_wait_for_their_price(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "new_pages", lambda: 7)
    watch = MemoryWatch(torch)
    watch.start()
    found = watch.stop(2)
    assert (found.new_pages_per_step, found.page_ns) == (0.0, None)


def test_a_script_that_touches_new_memory_anyway_is_recorded_so() -> None:
    assert is_missed(3.0, 5e6)
    assert not is_missed(17_000.0, 30e6)
