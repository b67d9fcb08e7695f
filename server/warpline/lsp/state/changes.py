"""Changes of what editors show. State reports them here; code that shows something subscribes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol


class Subscriber(Protocol):
    """Called for each change, on the event loop's thread."""

    def results_changed(self, folder: Path) -> None:
        """Other runs of a folder are shown now; ``shown_changed`` follows."""

    def shown_changed(self) -> None:
        """Hints, lenses or diagnostics may look different now."""

    def running_changed(self) -> None:
        """A script was started in a folder, or has ended."""


@dataclass
class _Batch:
    folders: dict[Path, None] = field(default_factory=dict)  # in order
    shown: bool = False
    told: bool = False


class Changes:
    """Subscribers, and the changes on their way to them."""

    def __init__(self) -> None:
        self._subscribers: list[Subscriber] = []
        self._batch: ContextVar[_Batch | None] = ContextVar("batch", default=None)

    def subscribe(self, subscriber: Subscriber) -> None:
        """Tell ``subscriber`` of every change from now on."""
        self._subscribers.append(subscriber)

    def results(self, folder: Path) -> None:
        """The results of ``folder`` are others now."""
        with self.together() as batch:
            batch.folders[folder] = None
            batch.shown = True

    def shown(self) -> None:
        """What is shown changed, though the results did not: settings, sources, a comparison."""
        with self.together() as batch:
            batch.shown = True

    def running(self) -> None:
        """What runs changed. Told at once: the user waits for it."""
        for subscriber in self._subscribers:
            subscriber.running_changed()

    @contextmanager
    def together(self) -> Iterator[_Batch]:
        """Tell of all changes inside at the end, each once: in this task and in those that it starts."""
        outer = self._batch.get()
        if outer is not None and not outer.told:
            yield outer
            return
        batch = _Batch()
        token = self._batch.set(batch)
        try:
            yield batch
        finally:
            self._batch.reset(token)
            batch.told = True
            for subscriber in self._subscribers:
                for folder in batch.folders:
                    subscriber.results_changed(folder)
                if batch.shown:
                    subscriber.shown_changed()
