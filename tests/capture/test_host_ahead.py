"""How far the host runs ahead of the device in the warm-up is noted."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

from warpline.capture.runner.windows.stages import Warmup
from warpline.wire.control import Windows

DEVICE_S = 0.02


def test_the_wait_for_the_device_is_not_the_hosts() -> None:
    gone: list[Any] = []
    session: Any = MagicMock()
    session.own_profiler = SimpleNamespace(in_the_way=False)
    session.windows = Windows(warmup=3)
    session.synchronize = lambda: time.sleep(DEVICE_S)
    session.go = gone.append
    stage = Warmup(session)
    stage.begin()
    for _ in range(3):
        stage.tick()
    assert gone == [session.after_warmup]
    # Each step is the host's part and then the wait: so are the middle ones.
    assert 0 < session.host_step_ns <= session.step_ns - 0.9 * DEVICE_S * 1e9
