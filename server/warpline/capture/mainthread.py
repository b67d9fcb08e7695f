"""Which of the threads that py-spy tells of is the main one."""

from __future__ import annotations

from collections.abc import Mapping


def main_thread(names: Mapping[str, str], pid: int) -> str | None:
    """The key of the main thread among ``names`` (a thread's number in the system as text -> its name).

    py-spy has the names from the ``threading`` module. In a process that never imported it no thread has one;
    Linux gives the main thread the number of its process. That may be another number in a container, where an
    only thread is the main one.
    """
    called = [key for key, name in names.items() if name == "MainThread"]
    if called:
        return called[0]
    return str(pid) if str(pid) in names else next(iter(names)) if len(names) == 1 else None
