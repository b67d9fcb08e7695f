"""Waiting coroutines: the lines to which an idle event loop's time belongs."""

from __future__ import annotations

import dis
import sys

COROUTINE = 0x80  # CO_COROUTINE: a function of ``async def`` that yields nothing
RETURN = dis.opmap["RETURN_VALUE"]


def only_task() -> bool:
    """Whether the loop that runs here has one task: then it waits for what this one awaits.

    Of several it is unknown which one the step waits for. A script that drives its coroutines itself
    goes on with its own next line, so for it there is none.
    """
    tasks = getattr(sys.modules.get("asyncio"), "all_tasks", None)
    try:
        return tasks is not None and len(tasks()) == 1
    except RuntimeError:  # no loop runs in this thread
        return False
