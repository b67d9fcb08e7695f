"""torch's stacks of modes: of functions, and of what is dispatched below autograd."""

from __future__ import annotations

from typing import Any, Callable, Sequence


def taken_off(
    mode: Any, entries: Sequence[Any], pop: Callable[[], Any], push: Callable[[Any], object]
) -> bool:
    """Take ``mode`` off the stack with these ``entries``, also when the script has put others on top of it.
    False if it is not there."""
    if not any(entry is mode for entry in entries):
        return False
    above = []
    while True:
        top = pop()
        if top is mode:
            break
        above.append(top)
    for entry in reversed(above):
        push(entry)
    return True
