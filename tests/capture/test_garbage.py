"""Full collections of garbage, with the line that asked for them."""

from __future__ import annotations

import _thread
import gc
import inspect
import time

from warpline.capture.runner.waits.garbage import Garbage


def test_a_full_collection_has_its_step_and_line() -> None:
    garbage, step = Garbage(), 0
    garbage.watch(lambda: step)
    try:
        step = 7
        gc.collect(0)
        gc.collect()
        line = inspect.currentframe().f_lineno - 1  # type: ignore[union-attr]
        step = 9
        gc.collect()
    finally:
        garbage.forget()
    gc.collect()
    own = [one for one in garbage.full if one[1] == __file__]
    assert [(one[0], one[2]) for one in own] == [(7, line), (9, line + 3)]
    assert all(spent > 0 for *_, spent in own)


def test_a_collection_while_no_python_runs_has_no_line() -> None:
    """As at the end of the process, when the callback is all that runs."""
    garbage = Garbage()
    garbage.watch(lambda: 1)
    try:
        for phase in ("start", "stop"):
            _thread.start_new_thread(garbage._noted, (phase, {"generation": 2}))
            time.sleep(0.05)
    finally:
        garbage.forget()
    assert garbage.full == []


def test_what_full_collections_took_of_a_time() -> None:
    garbage = Garbage()
    garbage.start()
    gc.collect(0)
    gc.collect()
    garbage.stop()
    begin, end = garbage.full_spans[-1]
    assert garbage.full_within(begin, end) == end - begin > 0
    assert garbage.full_within(end, end + 1) == garbage.full_within(begin - 1, begin) == 0
