"""Lines that were removed from the text and may come back, by paste, undo or a checkout."""

from __future__ import annotations

from collections.abc import Sequence

#: Remembered at most; the oldest are forgotten first.
_LINES = 50_000
#: What a line said, which line of the run it is (below 0: none), and whether it was given back already.
Block = list[tuple[str, int, bool]]


class Lost:
    """Blocks of removed lines, the latest last. A line is given back once."""

    def __init__(self) -> None:
        self._blocks: list[Block] = []

    def add(self, keys: Sequence[str], origins: Sequence[int]) -> None:
        """A block of lines that left the text together; origin below 0: no line of the run's."""
        if not any(origin >= 0 for origin in origins) or self._put_back(keys, origins):
            return
        self._blocks.append([(text, origin, False) for text, origin in zip(keys, origins, strict=True)])
        count = sum(map(len, self._blocks))
        while count > _LINES and len(self._blocks) > 1:
            count -= len(self._blocks.pop(0))

    def found_otherwise(self, origins: set[int]) -> None:
        """These lines are in the text again, though not by ``take``: they are not given a second time."""
        self._blocks = [
            [(text, origin, given or origin in origins) for text, origin, given in block]
            for block in self._blocks
        ]
        self._blocks = [block for block in self._blocks if any(map(_is_left, block))]

    def _put_back(self, keys: Sequence[str], origins: Sequence[int]) -> bool:
        """Lines that a block gave back and that leave again go back to their places in it, so that equal
        lines come back in their order when the rest of the block does."""
        again = {origin: text for text, origin in zip(keys, origins, strict=True) if origin >= 0}
        for block in reversed(self._blocks):
            places = {
                origin: at
                for at, (text, origin, given) in enumerate(block)
                if given and again.get(origin) == text
            }
            if places.keys() == again.keys():
                for origin, at in places.items():
                    block[at] = (again[origin], origin, False)
                return True
        return False

    def take(self, keys: Sequence[str]) -> list[int]:
        """The origins of lines that came into the text: -1 where they are new.

        The longest piece of one block that fits wins, of equally long ones the one lost last.
        """
        found = [-1] * len(keys)
        wanted = {text for text in keys if text} if self._blocks else set()
        places: dict[str, list[tuple[int, int]]] = {}
        for number, block in enumerate(self._blocks):
            for at, (text, _, given) in enumerate(block):
                if text in wanted and not given:
                    places.setdefault(text, []).append((number, at))
        line = 0
        while line < len(keys):
            # Within a block the first of equal pieces: pasted text comes in its own order.
            pieces = [(self._fits(n, at, keys[line:]), n, -at) for n, at in places.get(keys[line], ())]
            length, number, at = max(pieces, default=(0, 0, 0))
            for k in range(length):
                text, origin, _ = self._blocks[number][k - at]
                found[line + k] = max(origin, -1)
                self._blocks[number][k - at] = (text, origin, True)
            line += length or 1
        self._blocks = [block for block in self._blocks if any(map(_is_left, block))]
        return found

    def _fits(self, number: int, at: int, keys: Sequence[str]) -> int:
        """How many lines of a block, from ``at`` on, are ``keys``; 0 when none of them is of the run."""
        length, known = 0, False
        for slot, key in zip(self._blocks[number][at:], keys, strict=False):
            text, _, given = slot
            if text != key or given:
                break
            length += 1
            known = known or _is_left(slot)
        return length if known else 0


def _is_left(slot: tuple[str, int, bool]) -> bool:
    _, origin, given = slot
    return origin >= 0 and not given
