"""Keeps results with their text: the current position of each line of the run's source.

An :class:`Anchor` is made once from both texts and then follows every edit. A line of the run is on
the line that it became, or nowhere; where that line says something else than it did, it is stale.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from warpline.text.alignment import align
from warpline.text.lines import key, split
from warpline.view.anchor_lost import Lost

#: Not from the run. ``_NEW`` is the same for a line that came with the edits not yet settled.
NONE = -1
_NEW = -2
#: So many states of a text are remembered, one for each change of all its lines.
_STATES = 8


class Anchor:
    """``origin(line)`` and ``where(run_line)``, both 0-based, for one text and one run's source."""

    def __init__(self, source: str, lines: Sequence[str]) -> None:
        """``source``: the text when the script ran; ``lines``: the text now, with line ends."""
        self._base = [key(line) for line in split(source)]
        self._keys = [key(line) for line in lines]
        self._origin = align(self._base, self._keys)
        self._lost = Lost()
        placed = set(self._origin)
        gone = [i for i in range(len(self._base)) if i not in placed]
        self._lost.add([self._base[i] for i in gone], gone)
        self._where: dict[int, int] | None = None
        self._fresh = False
        #: What the text was before each change of all its lines (by its keys), and where its lines were.
        self._states: dict[tuple[str, ...], list[int]] = {}
        self._large = False
        #: Another one after every edit: what was computed from the anchor holds as long as it is the same.
        self.version = 0

    @property
    def base(self) -> Sequence[str]:
        """What each line of the run's source says (its ``key``)."""
        return self._base

    def __len__(self) -> int:
        return len(self._origin)

    def origin(self, line: int) -> int:
        """The run's line that is at ``line`` now, or NONE."""
        self.settle()
        return self._origin[line] if 0 <= line < len(self._origin) else NONE

    def stale(self, line: int) -> bool:
        """Whether the run's line that is at ``line`` says something else now."""
        origin = self.origin(line)
        return origin >= 0 and self._base[origin] != self._keys[line]

    def placed(self, first: int, last: int) -> Iterator[tuple[int, int, bool]]:
        """(line, line of the run, stale) of each line from ``first`` to ``last`` (inclusive) that is from the
        run: ``origin`` and ``stale`` of many lines at once."""
        self.settle()
        first, end = max(first, 0), min(last + 1, len(self._origin))
        base, keys = self._base, self._keys
        for line in range(first, end):
            origin = self._origin[line]
            if origin >= 0:
                yield line, origin, base[origin] != keys[line]

    def where(self, run_line: int) -> int:
        """Where a line of the run is now, or NONE."""
        self.settle()
        if self._where is None:
            self._where = {origin: line for line, origin in enumerate(self._origin) if origin >= 0}
        return self._where.get(run_line, NONE)

    def key(self, line: int) -> str:
        """What the text says at ``line`` now."""
        return self._keys[line] if 0 <= line < len(self._keys) else ""

    def splice(self, start: int, removed: int, added: Sequence[str], head: bool, tail: bool) -> None:
        """An edit replaced ``removed`` lines from ``start`` by ``added``.

        ``head``: something of the first removed line is kept in the first added one; ``tail``: of
        the last removed in the last added.
        """
        keys = [key(line) for line in added]
        if removed >= len(self._keys):
            self._remember()
        old_keys = self._keys[start : start + removed]
        old = self._origin[start : start + removed]
        match = _follow(old_keys, keys, head, tail)
        followed = set(match)
        gone = [i for i in range(removed) if i not in followed]
        self._lost.add([old_keys[i] for i in gone], [old[i] for i in gone])
        self._origin[start : start + removed] = [_NEW if i < 0 else old[i] for i in match]
        self._keys[start : start + removed] = keys
        self._where = None
        self._fresh = True
        self.version += 1

    def settle(self) -> None:
        """After all edits of one change: what was cut and is elsewhere now is the same line."""
        if not self._fresh:
            return
        self._fresh = False
        if self._large and self._as_before():
            return
        while _NEW in self._origin:
            line = end = self._origin.index(_NEW)
            while end < len(self._origin) and self._origin[end] == _NEW:
                end += 1
            self._origin[line:end] = self._lost.take(self._keys[line:end])

    def _remember(self) -> None:
        """Before a change of the whole text (a formatter, a sort, another branch): undoing it must bring
        each line back, also where the order or the lines themselves do not say which was which."""
        if _NEW not in self._origin:
            self._states.setdefault(tuple(self._keys), list(self._origin))
            while len(self._states) > _STATES:
                self._states.pop(next(iter(self._states)))
        self._large = True

    def _as_before(self) -> bool:
        """Whether the text is as it was before such a change; then its lines are where they did."""
        self._large = False
        known = self._states.get(tuple(self._keys))
        if known is None:
            return False
        standing = set(known)
        gone = [at for at, origin in enumerate(self._origin) if origin >= 0 and origin not in standing]
        self._lost.found_otherwise(standing)
        self._lost.add([self._base[self._origin[at]] for at in gone], [self._origin[at] for at in gone])
        self._origin[:] = known
        return True


def _follow(old: Sequence[str], new: Sequence[str], head: bool, tail: bool) -> list[int]:
    """The index of the removed line that became each added line, or -1."""
    match = [-1] * len(new)
    if not old or not new:
        return match
    a, b, c, d = 0, len(old), 0, len(new)
    # What the edit left of its first and last line is known by position, even among equal lines.
    if head and old[0] == new[0]:
        match[0], a, c = 0, 1, 1
    if tail and a < b and c < d and old[-1] == new[-1]:
        b, d = b - 1, d - 1
        match[d] = b
    for j, i in enumerate(align(old[a:b], new[c:d])):
        match[c + j] = a + i if i >= 0 else -1
    taken = set(match)
    if head and match[0] < 0 and 0 not in taken:
        match[0] = 0
        taken.add(0)
    if tail and match[-1] < 0 and len(old) - 1 not in taken:
        match[-1] = len(old) - 1
    return match
