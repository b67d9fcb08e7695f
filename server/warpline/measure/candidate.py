"""A candidate: fixes laid over the sources in memory, and what they are known by."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from warpline.model.problem import Problem
from warpline.model.report import Edit

Texts = Callable[[str], "str | None"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """``overlay``: path -> changed text of every file that differs from the plain script.

    ``fixes``: ids of the findings it remedies. ``work``: samples a step, of the plain script's
    step (2.0 where the batch is twice as large): step times are compared per sample.
    """

    fixes: tuple[str, ...]
    title: str
    overlay: Mapping[str, str] = field(default_factory=dict)
    safe: bool = False  # values cannot change
    work: float = 1.0

    @property
    def key(self) -> str:
        """Equal for equal changed texts, whatever they are called."""
        return digest(sorted(self.overlay.items()))


def digest(texts: Iterable[tuple[str, str]]) -> str:
    """A hash of paths and texts, in the order given."""
    found = hashlib.sha256()
    for path, text in texts:
        for part in (path, text):
            data = part.encode("utf-8", "surrogatepass")
            found.update(len(data).to_bytes(8, "little") + data)
    return found.hexdigest()[:32]


def changed(edits: Iterable[Edit], texts: Texts) -> dict[str, str]:
    """The texts of the edited files after ``edits``, all of which speak of ``texts`` as they are.

    Raises Problem when a file is gone, an edit lies outside it, or two edits overlap.
    """
    by_file: dict[str, list[Edit]] = {}
    for edit in edits:
        by_file.setdefault(edit.file, []).append(edit)
    return {file: _applied(file, several, texts(file)) for file, several in by_file.items()}


def _applied(file: str, edits: list[Edit], text: str | None) -> str:
    if text is None:
        raise Problem(f"cannot read {file}, which a fix would change")
    starts = [0]
    # Lines as Python counts them: a form feed or U+2028 ends none.
    for line in io.StringIO(text, newline=""):
        starts.append(starts[-1] + len(line))
    spans = []
    for edit in edits:
        try:
            start, end = starts[edit.start[0] - 1] + edit.start[1], starts[edit.end[0] - 1] + edit.end[1]
        except IndexError:
            raise Problem(f"{file} changed since the fix was made: profile it again") from None
        if not 0 <= start <= end <= len(text):
            raise Problem(f"{file} changed since the fix was made: profile it again")
        spans.append((start, end, edit.text))
    pieces, at = [], 0
    # Several insertions at one place keep the order in which they were given.
    for start, end, new in sorted(spans, key=lambda span: span[:2]):
        if start < at:
            raise Problem(f"two edits of {file} overlap")
        pieces += [text[at:start], new]
        at = end
    return "".join((*pieces, text[at:]))
