"""torch's stacks of modes: torch function modes and torch dispatch modes."""

from __future__ import annotations

from typing import Any, Callable, Sequence


def taken_off(
    mode: Any, entries: Sequence[Any], pop: Callable[[], Any], push: Callable[[Any], object]
) -> bool:
    """Remove ``mode`` from the stack with these ``entries``, even if the script has pushed others on top of
    it. False if it is not on the stack."""
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
