"""Times two computations in turn, so that a slowdown of the machine affects both.

On a device the host's time is read off the clock while the calls are queued behind a kernel that only waits,
and the device's off events around them: so neither hides the other. The queue holds 1,024 launches, and no
more may be queued than that.
"""

from __future__ import annotations

import gc
import math
import time
from functools import partial
from typing import Any, Callable, Optional

import torch

from ....wire.probing import Cost

#: Each computation gets about so long in all, its warm-up left out; one that is slow has ``LEAST`` readings,
#: as long as both together do not take ``MOST_S``.
EACH_S, LEAST, MOST_S = 0.03, 3, 0.5
#: On a CPU, where other processes disturb some rounds, fewer could not say whether the two differ at all.
LEAST_ON_HOST = 8
#: Of one reading: many times the clock's own cost.
READING_S = 0.002
#: Of those the slowest answer is worth waiting for.
MOST = 40
#: While calls are queued for so long the queue does not fill (a launch takes 3 us and more).
QUEUED_S = 0.002
#: Numbers of a tensor that no cache holds (64 MB).
OTHERS = 1 << 24
#: Clock cycles of a device in a nanosecond, at most: a wait that is too long costs only time.
CYCLES_A_NS = 2.2

Work = Callable[[], Any]


def of_both(
    before: Work,
    after: Work,
    device: str,
    ends: float,
    period_ns: Optional[int] = None,
    most_s: float = MOST_S,
) -> tuple[Cost, Cost, tuple[float, ...]]:
    """``(cost of before, cost of after, their ratio in each round)``; see ``wire.probing.Answer``.

    Nothing is begun after ``ends``, or ``most_s`` of readings, once there is one of each (two, if these are
    not that long by themselves).
    ``period_ns``: on a CPU half of the calls come after other work, which fills the time that a step has from
    one call to the next one; 0: not known, and long. None: no other work.
    """
    collecting = gc.isenabled()
    gc.disable()  # a full collection takes longer than hundreds of calls, and steps seldom have one
    try:
        return _in_turn((before, after), device, ends, period_ns, most_s)
    finally:
        if collecting:
            gc.enable()


def _in_turn(
    works: tuple[Work, Work], device: str, ends: float, period_ns: Optional[int], most_s: float
) -> tuple[Cost, Cost, tuple[float, ...]]:
    """See ``of_both``."""
    counts, took = zip(*(_calls(work, device) for work in works))
    # One round that something held up would be all that is told, unless it is as long by itself.
    alone = 1 if sum(count * each for count, each in zip(counts, took)) >= most_s / 2 else 2
    read: Callable[[Work, int], Cost] = _on_device if device == "cuda" else _on_host
    if device != "cuda" and period_ns is not None:
        read = partial(_half_cold, others=_others(works[0], counts[0], period_ns))
    readings: list[list[Cost]] = [[], []]
    least = LEAST if device == "cuda" else LEAST_ON_HOST
    spent = 0.0
    while len(readings[1]) < MOST:
        began = time.monotonic()
        enough = spent >= 2 * EACH_S and len(readings[1]) >= least
        over = spent >= most_s and len(readings[1]) >= alone
        if readings[1] and (enough or over or began >= ends):
            break
        # The one that goes second finds the caches as the first has left them: they take turns at that.
        for at in (0, 1) if len(readings[1]) % 2 == 0 else (1, 0):
            readings[at].append(read(works[at], counts[at]))
        spent += time.monotonic() - began
    ratios = tuple(after.device_ns / before.device_ns for before, after in zip(*readings))
    return _quickest(readings[0]), _quickest(readings[1]), ratios


def _quickest(readings: list[Cost]) -> Cost:
    """The least of the readings: other processes can only make a reading longer."""
    return Cost(min(one.host_ns for one in readings), min(one.device_ns for one in readings))


def _calls(work: Work, device: str) -> tuple[int, float]:
    """Calls of one reading, after those that choose kernels and fill caches (once is enough if it is slow),
    and the seconds of one call."""
    took = 0.0
    for _ in range(3):
        if took > EACH_S and device != "cuda":  # there the first one may wake a library
            break
        began = time.perf_counter()
        work()
        queued = time.perf_counter() - began
        if device == "cuda":
            torch.cuda.synchronize()
        took = time.perf_counter() - began
    if device == "cuda":
        return max(1, int(min(QUEUED_S / max(queued, 1e-7), READING_S * 4 / max(took, 1e-7)))), took
    return max(1, math.ceil(READING_S / max(took, 1e-7))), took


def _on_host(work: Work, calls: int) -> Cost:
    # Of one thread the processor's time is the work's own, whatever else runs; several wait for each other.
    now = time.process_time_ns if torch.get_num_threads() == 1 else time.perf_counter_ns
    began = now()
    for _ in range(calls):
        work()
    took = max(1, now() - began) / calls
    return Cost(took, took)


def _others(work: Work, calls: int, period_ns: int) -> int:
    """Numbers that other work may write between two calls of ``work``: at most ``OTHERS``."""
    if not period_ns:
        return OTHERS
    torch.ones(OTHERS).add_(1.0)
    all_ns = _on_host(lambda: torch.ones(OTHERS).add_(1.0), 1).host_ns
    left_ns = period_ns - _on_host(work, calls).host_ns
    return min(OTHERS, max(0, int(OTHERS * left_ns / all_ns)))


def _half_cold(work: Work, calls: int, others: int) -> Cost:
    """The mean of a call after itself and of one after other work, which has filled the caches.

    Between two calls in a step there is other work, but what goes in was often made just before. Of one
    network whose compiled layers took 0.62 of their time, hot calls said 0.55 and cold ones 0.72; of another
    one both said the same. Of a function of small tensors that was called 400 times one after the other, cold
    ones said 1.13, hot ones 0.52, and the clock that it gained (torch 2.13).
    """
    hot = _on_host(work, calls)
    times = max(1, min(calls, OTHERS // max(1, others)))
    cold_ns = 0.0
    for _ in range(times):
        torch.ones(others).add_(1.0)
        cold_ns += _on_host(work, 1).host_ns
    took = (hot.host_ns + cold_ns / times) / 2
    return Cost(took, took)


def _on_device(work: Work, calls: int) -> Cost:
    torch.cuda.synchronize()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    began = time.perf_counter_ns()
    for _ in range(calls):
        work()
    queued = time.perf_counter_ns() - began
    torch.cuda.synchronize()
    # Once more, behind a wait that is longer than queueing takes: now nothing waits for the host.
    torch.cuda._sleep(int(queued * 1.5 * CYCLES_A_NS))
    start.record()
    for _ in range(calls):
        work()
    end.record()
    torch.cuda.synchronize()
    return Cost(queued / calls, max(1.0, start.elapsed_time(end) * 1e6 / calls))
