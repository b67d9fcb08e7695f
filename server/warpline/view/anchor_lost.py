"""Lines that were taken out of the text and may come back: by paste, by undo, by a checkout."""

from __future__ import annotations

from collections.abc import Sequence

#: Remembered at most; the oldest are forgotten first.
_LINES = 50_000
#: A line that was given back already.
_GIVEN: None = None

Block = list["tuple[str, int | None]"]


class Lost:
    """Blocks of removed lines, the latest last. A line is given back once."""

    def __init__(self) -> None:
        self._blocks: list[Block] = []

    def add(self, keys: Sequence[str], origins: Sequence[int]) -> None:
        """A block of lines that left the text together; origin below 0: no line of the run's."""
        if not any(origin >= 0 for origin in origins):
            return
        self._blocks.append(list(zip(keys, origins, strict=True)))
        count = sum(map(len, self._blocks))
        while count > _LINES and len(self._blocks) > 1:
            count -= len(self._blocks.pop(0))

    def take(self, keys: Sequence[str]) -> list[int]:
        """The origins of lines that came into the text: -1 where they are new.

        The longest piece of one block that fits wins, of equally long ones the one lost last.
        """
        found = [-1] * len(keys)
        wanted = {text for text in keys if text} if self._blocks else set()
        places: dict[str, list[tuple[int, int]]] = {}
        for number, block in enumerate(self._blocks):
            for at, (text, origin) in enumerate(block):
                if text in wanted and origin is not _GIVEN:
                    places.setdefault(text, []).append((number, at))
        line = 0
        while line < len(keys):
            # Within a block the first of equal pieces: pasted text comes in its own order.
            pieces = [(self._fits(n, at, keys[line:]), n, -at) for n, at in places.get(keys[line], ())]
            length, number, at = max(pieces, default=(0, 0, 0))
            for k in range(length):
                text, origin = self._blocks[number][k - at]
                found[line + k] = origin if origin is not None and origin >= 0 else -1
                self._blocks[number][k - at] = (text, _GIVEN)
            line += length or 1
        self._blocks = [block for block in self._blocks if any(_known(origin) for _, origin in block)]
        return found

    def _fits(self, number: int, at: int, keys: Sequence[str]) -> int:
        """How many lines of a block, from ``at`` on, are ``keys``; 0 when none of them is of the run."""
        length, known = 0, False
        for (text, origin), key in zip(self._blocks[number][at:], keys, strict=False):
            if text != key or origin is _GIVEN:
                break
            length += 1
            known = known or _known(origin)
        return length if known else 0


def _known(origin: int | None) -> bool:
    return origin is not None and origin >= 0
