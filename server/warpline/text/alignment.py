"""Which line of one text became which line of another, when only the two texts are known.

Patience alignment (lines that occur once on both sides, in order, then recursively between them),
then blocks that moved, then lines that changed in place. A line is only paired when there is one
candidate: a wrong pair would put one line's time on another.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from warpline.text.lines import key, lines_of

_WORD = re.compile(r"""\w*"[^"]*"|\w*'[^']*'|\w+(?:\.\w+)*|\S""")
#: Below this likeness a replaced line counts as another line, not as the same one changed.
LIKENESS = 0.6
#: Larger gaps without a single unique line are left unpaired: quadratic work for no certainty.
_SMALL = 4096
#: The same for comparing lines letter by letter.
_LIKE = 256


def align(old: Sequence[str], new: Sequence[str]) -> list[int]:
    """The index in ``old`` of the same line, for every line of ``new``; -1 for a new line."""
    match = [-1] * len(new)
    gaps = _in_order(old, new, match)
    _moved(old, new, match)
    taken = set(match)
    for gap in gaps:
        _changed(old, new, match, gap, taken)
    return match


def matched(old: str, new: str) -> dict[int, int]:
    """``{line of old: line of new}``, from 1. White space and trailing comments do not count."""
    keys = ([key(line) for line in lines_of(text)] for text in (old, new))
    return {before + 1: after + 1 for after, before in enumerate(align(*keys)) if before >= 0}


def word_at(old: str, new: str, column: int) -> int:
    """The column at which the word, number or string begins in the line ``new`` that begins at ``column`` in
    ``old``; -1 if it is gone or another one."""
    before, after = list(_WORD.finditer(old)), list(_WORD.finditer(new))
    match = align([one[0] for one in before], [one[0] for one in after])
    for then, now in zip(match, after, strict=True):
        if then >= 0 and before[then].start() == column:
            return now.start() if before[then][0] == now[0] and now[0] not in "([{" else -1
    return -1


Gap = tuple[int, int, int, int]


def _in_order(old: Sequence[str], new: Sequence[str], match: list[int]) -> list[Gap]:
    """Fills ``match`` with equal lines in common order; returns what stays open between them."""
    gaps: list[Gap] = []
    todo: list[Gap] = [(0, len(old), 0, len(new))]
    while todo:
        a, b, c, d = todo.pop()
        while a < b and c < d and old[a] == new[c]:
            match[c] = a
            a, c = a + 1, c + 1
        while a < b and c < d and old[b - 1] == new[d - 1]:
            b, d = b - 1, d - 1
            match[d] = b
        if a == b or c == d:
            if a != b or c != d:
                gaps.append((a, b, c, d))
            continue
        pivots = list(_unique(old, new, (a, b, c, d)))
        if not pivots and (b - a) * (d - c) <= _SMALL:
            pivots = list(_common(old, new, (a, b, c, d)))
        if not pivots:
            gaps.append((a, b, c, d))
            continue
        for i, j in pivots:
            match[j] = i
            todo.append((a, i, c, j))
            a, c = i + 1, j + 1
        todo.append((a, b, c, d))
    return gaps


def _unique(old: Sequence[str], new: Sequence[str], gap: Gap) -> Iterator[tuple[int, int]]:
    """The longest rising run of lines that occur once in both ranges."""
    a, b, c, d = gap
    before, after = Counter(old[a:b]), Counter(new[c:d])
    place = {old[i]: i for i in range(a, b) if before[old[i]] == 1}
    pairs = [(place[new[j]], j) for j in range(c, d) if after[new[j]] == 1 and new[j] in place]
    tails: list[int] = []
    ends: list[int] = []
    back = [-1] * len(pairs)
    for n, (i, _) in enumerate(pairs):
        at = bisect_left(tails, i)
        back[n] = ends[at - 1] if at else -1
        if at == len(tails):
            tails.append(i)
            ends.append(n)
        else:
            tails[at], ends[at] = i, n
    run = []
    n = ends[-1] if ends else -1
    while n >= 0:
        run.append(pairs[n])
        n = back[n]
    yield from reversed(run)


def _common(old: Sequence[str], new: Sequence[str], gap: Gap) -> Iterator[tuple[int, int]]:
    a, b, c, d = gap
    blocks = SequenceMatcher(None, old[a:b], new[c:d], autojunk=False).get_matching_blocks()
    for block in blocks:
        for k in range(block.size):
            yield a + block.a + k, c + block.b + k


def _moved(old: Sequence[str], new: Sequence[str], match: list[int]) -> None:
    """Pairs lines left over exactly once on both sides, and what moved along with them."""
    taken = set(match)
    rest = [i for i in range(len(old)) if i not in taken]
    left, right = Counter(old[i] for i in rest), Counter(new[j] for j, i in enumerate(match) if i < 0)
    place = {old[i]: i for i in rest if left[old[i]] == 1 and right[old[i]] == 1 and old[i]}
    if not place:
        return
    free = set(rest)
    for j, line in enumerate(new):
        if match[j] >= 0 or line not in place:
            continue
        i = place[line]
        if i not in free:
            continue
        match[j] = i
        free.discard(i)
        for step in (-1, 1):
            x, y = i + step, j + step
            while x in free and 0 <= y < len(new) and match[y] < 0 and old[x] == new[y]:
                match[y] = x
                free.discard(x)
                x, y = x + step, y + step


def _changed(old: Sequence[str], new: Sequence[str], match: list[int], gap: Gap, taken: set[int]) -> None:
    """Pairs lines of one gap that are each other's best likeness, without crossing.

    ``taken``: lines of ``old`` that have their pair, some of this gap among them that moved out of it.
    """
    a, b, c, d = gap
    lines = [i for i in range(a, b) if i not in taken and old[i]]
    others = [j for j in range(c, d) if match[j] < 0 and new[j]]
    if not lines or not others or len(lines) * len(others) > _LIKE:
        return
    likeness = {(i, j): SequenceMatcher(None, old[i], new[j]).ratio() for i in lines for j in others}
    for (i, j), ratio in sorted(likeness.items(), key=lambda item: -item[1]):
        if ratio < LIKENESS:
            break
        if match[j] >= 0 or i in taken:
            continue
        # Two lines match this one equally well: it is unknown which one it was.
        rivals = [pair for pair, r in likeness.items() if r == ratio and (pair[0] == i) != (pair[1] == j)]
        if any(match[y] < 0 and x not in taken for x, y in rivals):
            continue
        if any(match[y] >= 0 and (match[y] < i) != (y < j) for y in others):
            continue
        match[j] = i
        taken.add(i)
