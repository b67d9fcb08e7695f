"""Whether the steps live on batches that loader workers made before.

While a script compiles or makes its first step, its workers fill their queue. Steps that take batches from it
do not wait, also where the workers are too slow: with 12 workers, 24 batches of a loader that takes twice as
long as the rest of a step last for 48 steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

#: The number of busy workers does not grow if it was as large so many steps ago. Chosen, not fitted.
STEADY = 4


class Queues:
    """The queues of loaders with workers, looked at after each step of the warm-up."""

    def __init__(self) -> None:
        #: Of each iterator: how many batches were ready, and how many workers had one to make.
        self._seen: WeakKeyDictionary[Any, list[tuple[int, int]]] = WeakKeyDictionary()

    def emptying(self, iterators: Iterable[Any]) -> bool:
        """Whether a queue of ``iterators`` (torch's) still gets emptier, as far as the looks so far tell."""
        found = False
        for one in iterators:
            workers = getattr(one, "_num_workers", 0)
            if workers and (look := _look(one, workers)) is not None:
                seen = self._seen.setdefault(one, [])
                seen.append(look)
                found |= emptying(seen, workers)
        return found

    def burst(self) -> int:
        """Number of batches that arrive together before the steps wait again; 1 if they do not wait."""
        waited = [
            one._num_workers for one, seen in self._seen.items() if _was_empty(seen[-one._num_workers :])
        ]
        return max(waited, default=1)


def emptying(seen: Sequence[tuple[int, int]], workers: int) -> bool:
    """The same for one queue. ``seen``: ready batches and busy workers at each look.

    A queue that is empty now and then is what slow workers leave, once each has given one more batch since
    it first was: before, the steps waited less. If some workers are idle, and no more of them become
    busy, they are fast enough.
    """
    if _was_empty(seen[-workers:]):
        return not _was_empty(seen[:-workers])
    return len(seen) <= STEADY or not workers > seen[-1][1] <= seen[-1 - STEADY][1]


def _was_empty(seen: Sequence[tuple[int, int]]) -> bool:
    return any(ready == 0 for ready, _ in seen)


def _look(iterator: Any, workers: int) -> tuple[int, int] | None:
    """Look at one queue now; None if the iterator has ended, or its parts have other names."""
    try:
        waiting = iterator._worker_result_queue.qsize()
        if iterator._data_queue is not iterator._worker_result_queue:  # pinned by a thread
            waiting += iterator._data_queue.qsize()
        early = sum(len(task) == 2 for task in iterator._task_info.values())
        sent = iterator._tasks_outstanding
    except (AttributeError, NotImplementedError, OSError, RuntimeError, ValueError):
        return None  # macOS tells no sizes; a queue that is closed has none
    return (waiting + early, min(workers, max(0, sent - waiting))) if sent + early else None
