"""What is made of py-spy's answers."""

from __future__ import annotations

from warpline.capture.attach import _counted, _refusal

RAW = """\
thread (7): "MainThread";<module> (/w/train.py:9);step (/w/train.py:4);mm (/v/site-packages/t.py:1) 30
thread (7): "MainThread";<module> (/w/train.py:9) 10
thread (8): "Thread-1";run (/w/train.py:2) 99
"""


def test_the_innermost_line_of_the_users_counts() -> None:
    found = _counted(RAW, 5)
    assert found.total == 40
    assert found.lines == (("/w/train.py", 4, 30), ("/w/train.py", 9, 10))


def test_a_process_that_never_imported_threading_has_a_main_thread() -> None:
    unnamed = RAW.replace(': "MainThread"', "").replace(': "Thread-1"', "")
    assert _counted(unnamed, 7).total == 40
    assert _counted(unnamed, 5).total == 0, "neither of two is known to be it"
    assert _counted("".join(unnamed.splitlines(keepends=True)[:2]), 5).total == 40


def test_a_refusal_says_what_would_allow_it() -> None:
    assert "ptrace_scope" in _refusal(7, "Error: Permission Denied: Try again")
    assert _refusal(7, "Error: no python\nStack backtrace:\n 6: start\n").endswith("Error: no python")
