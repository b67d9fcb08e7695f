"""Lines that were taken out of the text and may come back: by paste, by undo, by a checkout."""

from __future__ import annotations

from collections.abc import Sequence

#: Remembered at most; the oldest are forgotten first.
_LINES = 50_000


class Lost:
    """Blocks of removed lines, the latest last. A line is given back once."""

    def __init__(self) -> None:
        self._keys: list[list[str]] = []
        self._origins: list[list[int]] = []
        self._count = 0

    def add(self, keys: list[str], origins: list[int]) -> None:
        """A block of lines that left the text together; origin -1: no line of the run's."""
        if not any(origin >= 0 for origin in origins):
            return
        self._keys.append(keys)
        self._origins.append(origins)
        self._count += len(keys)
        while self._count > _LINES and len(self._keys) > 1:
            self._count -= len(self._keys.pop(0))
            self._origins.pop(0)

    def take(self, keys: Sequence[str]) -> list[int]:
        """The origins of lines that came into the text: -1 where they are new.

        The longest piece of one block that fits wins, of equally long ones the one lost last.
        """
        found = [-1] * len(keys)
        places: dict[str, list[tuple[int, int]]] = {}
        wanted = {text for text in keys if text} if self._keys else set()
        for number, block in enumerate(self._keys):
            for at, text in enumerate(block):
                if text in wanted and self._origins[number][at] >= 0:
                    places.setdefault(text, []).append((number, at))
        line = 0
        while line < len(keys):
            best, length = None, 0
            for place in reversed(places.get(keys[line], ())):
                fits = self._fits(place, keys, line)
                # Of equal lines in one block the first: pasted text comes in its own order.
                same = best is not None and place[0] == best[0] and fits == length
                if fits > length or (same and fits):
                    best, length = place, fits
            if best is None:
                line += 1
                continue
            number, at = best
            for k in range(length):
                found[line + k] = max(self._origins[number][at + k], -1)
                self._origins[number][at + k] = -1
            line += length
        self._forget()
        return found

    def _fits(self, place: tuple[int, int], keys: Sequence[str], line: int) -> int:
        number, at = place
        block, origins = self._keys[number], self._origins[number]
        if origins[at] < 0:
            return 0
        length = 0
        while (
            at + length < len(block)
            and line + length < len(keys)
            and block[at + length] == keys[line + length]
        ):
            length += 1
        return length

    def _forget(self) -> None:
        kept = [n for n, origins in enumerate(self._origins) if any(origin >= 0 for origin in origins)]
        self._keys = [self._keys[n] for n in kept]
        self._origins = [self._origins[n] for n in kept]
        self._count = sum(map(len, self._keys))
