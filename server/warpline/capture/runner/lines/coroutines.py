"""Waiting coroutines: the lines to which an idle event loop's time belongs."""

from __future__ import annotations

import dis
import sys

COROUTINE = 0x80  # CO_COROUTINE: a function of ``async def`` that yields nothing
RETURN = dis.opmap["RETURN_VALUE"]


def only_task() -> bool:
    """Whether the event loop of this thread has a single task: then the loop is idle because that task waits.

    With several tasks it is unknown which one the step waits for. Without an event loop the answer is False:
    a script that drives its coroutines itself goes on with its own next line.
    """
    tasks = getattr(sys.modules.get("asyncio"), "all_tasks", None)
    try:
        return tasks is not None and len(tasks()) == 1
    except RuntimeError:  # no loop runs in this thread
        return False
