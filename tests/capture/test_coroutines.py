"""The wait of an event loop stands at the ``await`` of its only task, else at the line that runs the loop."""

from __future__ import annotations

import sys
from typing import Any

from warpline.capture.runner.lines.locations import Locations
from warpline.capture.runner.lines.names import QualifiedNames
from warpline.capture.runner.lines.userfiles import UserFiles

if sys.version_info >= (3, 12):
    from warpline.capture.runner.lines.monitoring import Monitoring as LineEvents
else:
    from warpline.capture.runner.lines.tracing import Tracing as LineEvents

SCRIPT = """\
import asyncio, time

async def fetch():
    await asyncio.sleep(0.2)
    return 1

async def numbers():
    yield await fetch()

async def train():
    found = await fetch()
    async for number in numbers():
        found += number
    return found

async def beside():
    return await asyncio.gather(train(), fetch())

def run(work):
    return asyncio.run(work())

class Now:
    def __await__(self):
        yield

async def now():
    await Now()

def by_hand(work):
    begun = work()
    begun.send(None), time.sleep(0.2)
    begun.close()
"""
NAME = "/script/of/the/user.py"
SLEEP_NS = 100_000_000


def waited(function: str, work: str) -> list[int]:
    """The lines at which the thread was while it did nothing for long."""
    room: dict[str, Any] = {}
    exec(compile(SCRIPT, NAME, "exec"), room)
    locations = Locations(UserFiles(("/script",), ()), QualifiedNames())
    lines = LineEvents(locations)
    lines.start()
    try:
        room[function](room[work])
    finally:
        lines.stop()
    pairs = locations.records().pairs
    gaps = zip(pairs[::2], pairs[2::2], pairs[1::2], strict=False)
    return [locations.table[place & 0x7FFFFFFF][1] for begin, end, place in gaps if end - begin > SLEEP_NS]


def test_the_only_task_waits_at_its_innermost_await() -> None:
    assert waited("run", "train") == [4, 12], "an asynchronous generator hands on what its own awaits hand on"


def test_of_several_tasks_nobody_can_say() -> None:
    assert waited("run", "beside")[0] == 20


def test_a_coroutine_that_is_driven_by_hand_does_not_wait() -> None:
    assert waited("by_hand", "now") == [31]
