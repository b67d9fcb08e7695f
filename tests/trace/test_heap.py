"""Memory that was freed is used again."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.conftest import environment

PAGE = 4096
COLUMN = 8 << 20  # bytes
AGAIN = f"""
import resource
import threading

from warpline.trace import heap

heap.keep_freed()


def used() -> int:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    b"x" * {COLUMN}
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


print(used(), used())
other = threading.Thread(target=lambda: print(used()))
other.start()
other.join()
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the settings are glibc's")
def test_what_one_thread_freed_costs_no_thread_new_pages() -> None:
    done = subprocess.run(
        [sys.executable, "-c", AGAIN], env=environment(), capture_output=True, text=True, check=True
    )
    first, again, beside = map(int, done.stdout.split())
    assert first >= COLUMN // PAGE // 2
    assert again < COLUMN // PAGE // 10
    assert beside < COLUMN // PAGE // 10
