"""How far the host runs ahead of the device in the warm-up is noted."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

from warpline.capture.runner.windows.stages import Warmup
from warpline.wire.control import Windows

DEVICE_S = 0.02


def _warmed_up(steps: int, first_s: float = 0.0) -> Any:
    """A session after so many steps; the host takes ``first_s`` longer for the first."""
    gone: list[Any] = []
    session: Any = MagicMock()
    session.own_profiler = SimpleNamespace(in_the_way=False)
    session.windows = Windows(warmup=steps)
    session.synchronize = lambda: time.sleep(DEVICE_S)
    session.go = gone.append
    stage = Warmup(session)
    stage.begin()
    time.sleep(first_s)
    for _ in range(steps):
        stage.tick()
    assert gone == [session.after_warmup]
    return session


def test_the_wait_for_the_device_is_not_the_hosts() -> None:
    session = _warmed_up(3)
    # Each step is the host's part and then the wait: so are the middle ones.
    assert 0 < session.host_step_ns <= session.step_ns - 0.9 * DEVICE_S * 1e9


def test_what_the_first_step_loads_and_compiles_is_not_every_steps() -> None:
    assert _warmed_up(2, first_s=0.3).host_step_ns < 0.2e9
    assert _warmed_up(1, first_s=0.3).host_step_ns is None
