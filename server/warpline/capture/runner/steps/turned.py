"""The turns of one loop as the beat of the steps: ``request.loop``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ....wire.loops import Loop
from . import compiling
from .written import ITEMS, TURN, same

if TYPE_CHECKING:
    from .beat import Steps
    from .sources import Heard


def _nothing() -> None:
    pass


class LoopTurns:
    """At the beginning of each turn; a ``while`` also when its condition no longer holds."""

    kind = "loop"

    def __init__(self) -> None:
        self.act: Callable[[], object] = _nothing
        self.number = 0  # of loops that are taken for the one asked for: several may stand on its line

    def prepare(self, loop: Loop) -> None:
        """Before the script is compiled."""

        def item(value: Any) -> Any:
            self.act()
            return value

        def items(number: int, iterable: Iterable[Any]) -> Iterator[Any]:
            return map(item, iterable)

        def turn(number: int) -> bool:
            self.act()
            return True

        def number(other: Loop) -> int | None:
            if self.number or not same(loop, other):
                return None
            self.number = 1
            return self.number

        compiling.install(lambda path: path == loop.file, number, False, {ITEMS: items, TURN: turn})

    def install(self, torch: ModuleType, heard: Heard) -> None:
        self.act = lambda: heard("loop", 0)

    def install_tick(self, torch: ModuleType, anchor: int | None, steps: Steps) -> None:
        self.act = steps.tick

    def remove(self) -> None:
        self.act = _nothing
