"""Marks steps by the iterations of one loop: ``request.loop``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ....wire.loops import Loop
from . import compiling
from .sources import unheard
from .written import ITEMS, TURN, same

if TYPE_CHECKING:
    from .beat import Steps
    from .sources import Heard


class LoopTurns:
    """Signals at the start of each iteration, and at the check that ends a ``while``."""

    kind = "loop"

    def __init__(self) -> None:
        self.act: Callable[[], object] = unheard
        self.found = False  # the loop was found; of several loops on its line, the first one is meant

    def prepare(self, loop: Loop, found: Callable[[Loop], object]) -> None:
        """Call before the script is compiled. ``found`` is called with the loop as it is in the source."""

        def item(value: Any) -> Any:
            self.act()
            return value

        def items(number: int, iterable: Iterable[Any]) -> Iterator[Any]:
            return map(item, iterable)

        def turn(number: int) -> bool:
            self.act()
            return True

        def number(other: Loop) -> int | None:
            if self.found or not same(loop, other):
                return None
            self.found = True
            found(other)
            return 0

        compiling.install(lambda path: path == loop.file, number, False, {ITEMS: items, TURN: turn})

    def install(self, torch: ModuleType, heard: Heard) -> None:
        self.act = lambda: heard("loop", 0)

    def install_tick(self, torch: ModuleType, anchor: int | None, steps: Steps) -> None:
        self.act = steps.tick

    def remove(self) -> None:
        self.act = unheard
