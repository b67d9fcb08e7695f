"""The end of a script with threads that continue after its last line.

Python waits for every non-daemon thread, without a limit. We wait too while threads make steps. But a thread
that never ends (a heartbeat, a server) must not prevent the report.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import NoReturn

from .patches import Patches

POLL_S = 0.05
#: How long to wait without a new step: ``IDLE_S`` if the process sleeps, ``BUSY_S`` if it uses the processor.
IDLE_S, BUSY_S = 10.0, 60.0
BUSY_SHARE = 0.05  # of one core's time
NOTE = "threads of the script continued after its last line and were ended: %s"
STOPPED_S = 2.0  # how long threads may take to end once the script is asked to end


class Stopped(KeyboardInterrupt):
    """Ends the script as Ctrl-C would, once everything is measured."""


def stop() -> NoReturn:
    """Raise ``Stopped`` in this thread, and send SIGINT to the main thread if that is another one.

    Exceptions in threads are not printed from now on: they occur because the script is being ended.
    """
    threading.excepthook = lambda told: None
    main = threading.main_thread()
    if threading.current_thread() is not main and main.ident is not None:
        signal.pthread_kill(main.ident, signal.SIGINT)  # also where it waits for a lock
    raise Stopped()


def others() -> list[threading.Thread]:
    """Living threads that Python would wait for."""
    here = threading.current_thread()
    return [thread for thread in threading.enumerate() if thread is not here and not thread.daemon]


def wait(progressed: Callable[[], int], stopping: Callable[[], bool]) -> list[str]:
    """Wait for the script's threads; returns the names of those that still run when it gives up.

    ``progressed()``: a number that grows with each step. ``stopping()``: whether the script is being ended.
    """
    _end_pools()
    before, since, worked = progressed(), time.monotonic(), time.process_time()
    while others():
        time.sleep(POLL_S)
        now, made = time.monotonic(), progressed()
        if made != before and not stopping():
            before, since, worked = made, now, time.process_time()
        busy = time.process_time() - worked > BUSY_SHARE * (now - since)
        if now - since > (STOPPED_S if stopping() else BUSY_S if busy else IDLE_S):
            break
    return [thread.name for thread in others()]


def _end_pools() -> None:
    """End the idle threads of executors, as Python does at exit: otherwise they wait for work."""
    pools = sys.modules.get("concurrent.futures.thread")
    if pools is not None:
        vars(pools)["_shutdown"] = True
        for work in list(pools._threads_queues.values()):
            work.put(None)


def watch_exits(exits: Callable[[int], None]) -> None:
    """``exits(status)`` is called before the script's own process ends by ``os._exit``, on the thread that
    calls it."""
    process = os.getpid()

    def make(original: Callable[[int], NoReturn]) -> Callable[[int], NoReturn]:
        def _exit(status: int) -> NoReturn:
            if os.getpid() == process:  # else a fork
                exits(status)
            original(status)

        return _exit

    Patches().replace(os, "_exit", make)


def leave(status: int) -> None:
    """End the process as Python does, but without waiting for running threads."""
    try:
        atexit._run_exitfuncs()
    finally:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (AttributeError, OSError, ValueError):  # the script closed it
                pass
        os._exit(status)
