"""Time in a pool's threads, while the step waits for them, is at the lines that run there."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.capture.launching import PYTHONS, Captured, request, write
from tests.kineto import AUTOGRAD, MAIN, OTHER, KinetoRun, at_line, closed, ns
from warpline import attribution, trace
from warpline.capture.runner.waits.wakes import Wakes
from warpline.wire.run import DeviceFacts

POOL = """\
import queue, threading, time, torch
from concurrent.futures import ThreadPoolExecutor

def fetch(seed):
    time.sleep(0.02)
    return seed

def heartbeat():
    while True:
        time.sleep(0.01)

def produce():
    while True:
        time.sleep(0.02)
        ready.put(1)

ready = queue.Queue(1)
for work in (heartbeat, produce):
    threading.Thread(target=work, daemon=True).start()
net = torch.nn.Linear(64, 8)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
with ThreadPoolExecutor(2) as pool:
    for step in range(60):
        rows = list(pool.map(fetch, range(4)))
        ready.get()
        time.sleep(0.02)
        loss = net(torch.randn(16, 64)).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize("python", PYTHONS)
def test_what_a_step_waits_for(tmp_path: Path, python: str) -> None:
    """The producer sleeps while the pool works, so that ``ready.get()`` hardly waits."""
    captured = Captured(request(write(tmp_path, POOL), python), tmp_path)
    profile = attribution.attribute(trace.read(captured.run))
    share = {cost.line: cost.step_ms / profile.steps.step_ms for cost in profile.lines}
    assert share[5] > 0.45, "two turns of 20 ms, of some 60 ms and the rest of the step"
    assert share[26] > 0.15, "the step's own sleep"
    assert share.get(24, 0.0) < 0.2, "the line that waits"
    assert share.get(10, 0.0) == 0, "nobody waits for this thread"
    assert closed(profile) == pytest.approx(profile.steps.step_ms)


def test_each_wait_has_the_thread_that_ended_it() -> None:
    wakes, ready, said = Wakes(), threading.Event(), []
    wait, notify = threading.Condition.wait, threading.Condition.notify

    def say() -> None:
        said.append(threading.get_native_id())
        threading.Event().wait(0.05)  # which nobody ends
        ready.set()

    wakes.start()
    thread = threading.Thread(target=say)
    thread.start()
    ready.wait()
    thread.join()
    wakes.stop()
    mine = [one for one in wakes.waits if one[2] == threading.get_native_id()]
    assert [by for _, _, _, by in mine][-1:] == said
    assert mine[-1][1] - mine[-1][0] > 20_000_000
    assert not [one for one in wakes.waits if one[2] in said]
    assert (threading.Condition.wait, threading.Condition.notify) == (wait, notify)


def test_the_wait_is_the_other_thread_s_while_it_is_at_a_line(tmp_path: Path) -> None:
    run = KinetoRun(
        tmp_path,
        1000,
        device=DeviceFacts("cpu", "a CPU", 1),
        facts={"thread_waits": [[ns(100), ns(900), MAIN, AUTOGRAD]]},
    )
    run.line(0, 10)
    run.line(200, 20, tid=AUTOGRAD)
    run.line(700, 0, tid=AUTOGRAD)
    run.line(950, 11)
    profile = run.profile()
    assert at_line(profile, 20).step_ms == pytest.approx(0.5, rel=0.01)
    assert at_line(profile, 10).step_ms == pytest.approx(0.45, rel=0.01)
    assert closed(profile) == pytest.approx(1.0)


def test_where_a_pool_s_thread_waits_for_work_the_waiting_line_applies(tmp_path: Path) -> None:
    """The thread that makes the steps is at no line for a while, and another one waits for it."""
    run = KinetoRun(
        tmp_path,
        1000,
        device=DeviceFacts("cpu", "a CPU", 1),
        facts={"thread_waits": [[ns(0), ns(1000), AUTOGRAD, MAIN]]},
    )
    run.line(0, 10)
    run.line(0, 20, tid=AUTOGRAD)
    run.line(700, 0)
    run.line(900, 11)
    profile = run.profile()
    assert at_line(profile, 10).step_ms == pytest.approx(0.7, rel=0.01)
    assert at_line(profile, 20).step_ms == pytest.approx(0.2, rel=0.01)
    assert profile.unattributed.step_ms == pytest.approx(0.0, abs=1e-6)


def test_between_two_requests_the_first_thread_s_line_applies(tmp_path: Path) -> None:
    """A server's pool has one thread at work; the event loop that gives it requests waits in no condition."""
    run = KinetoRun(tmp_path, 1000, device=DeviceFacts("cpu", "a CPU", 1), facts={"step_threads": [AUTOGRAD]})
    run.line(0, 10)
    run.line(100, 20, tid=AUTOGRAD)
    run.op("aten::mm", 200, 300, tid=AUTOGRAD)
    run.line(800, 0, tid=AUTOGRAD)
    profile = run.profile()
    assert at_line(profile, 20).step_ms == pytest.approx(0.7, rel=0.01)
    assert at_line(profile, 10).step_ms == pytest.approx(0.3, rel=0.01)
    assert profile.unattributed.step_ms == pytest.approx(0.0, abs=1e-6)


def test_requests_in_threads_of_their_own_have_their_host_time(tmp_path: Path) -> None:
    run = KinetoRun(
        tmp_path, 1000, steps=2, device=DeviceFacts("cpu", "a CPU", 1),
        facts={"step_threads": [AUTOGRAD, OTHER]},
    )  # fmt: skip
    run.line(0, 10)
    for begin, thread in ((100, AUTOGRAD), (500, OTHER)):
        run.line(begin, 20, tid=thread)
        run.op("aten::mm", begin + 100, 100, tid=thread)
        run.line(begin + 300, 21, tid=thread)
        run.line(begin + 450, 0, tid=thread)  # the first request's end is in the second one
    profile = run.profile()
    assert at_line(profile, 20).step_ms == pytest.approx(0.3, rel=0.01)
    assert at_line(profile, 21).step_ms == pytest.approx(0.125, rel=0.01)
    assert at_line(profile, 10).step_ms == pytest.approx(0.075, rel=0.01)
    assert closed(profile) == pytest.approx(0.5)
