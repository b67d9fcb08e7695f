"""The timings of a search, saved to disk after every process, so that an interrupted search can continue."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from warpline import runs
from warpline.measure.candidate import Candidate, Texts, digest
from warpline.measure.pairs import Pairs
from warpline.measure.timed import Timed
from warpline.model.problem import Problem
from warpline.model.profile import Profile

NAME = "tune.json"
FORMAT = 1


@dataclass(frozen=True, slots=True)
class Page:
    """The rounds of one candidate, in one role ("tried" or "proved")."""

    plain: tuple[Timed, ...] = ()
    changed: tuple[Timed, ...] = ()
    baseline_ms: tuple[float, ...] = ()
    failure: str = ""


@dataclass(frozen=True, slots=True)
class Book:
    format: int = FORMAT
    sources: str = ""  # digest of the sources that all pages refer to
    pages: dict[str, Page] = field(default_factory=dict)


class Ledger:
    """The book of one run folder. Pages for other sources are discarded."""

    def __init__(self, run: Path, profile: Profile, texts: Texts, fresh: bool = False) -> None:
        self._run = run
        request = profile.manifest.request
        words = [("argv", "\0".join(request.argv)), ("python", request.python)]
        files = [(file, texts(file) or "") for file in sorted(profile.sources)]
        self._sources = digest([*words, *files])
        self._pages: dict[str, Page] = {} if fresh else self._read()

    @property
    def resumed(self) -> int:
        """Number of rounds saved by an earlier search."""
        return sum(len(page.changed) + bool(page.failure) for page in self._pages.values())

    def pairs(self, candidate: Candidate, role: str) -> Pairs:
        """The rounds of ``candidate`` so far."""
        page = self._pages.get(f"{role}:{candidate.key}", Page())
        return Pairs(candidate, list(page.plain), list(page.changed), list(page.baseline_ms), page.failure)

    def keep(self, pairs: Pairs, role: str) -> None:
        """Store ``pairs``. If the folder cannot be written, the search goes on, but cannot be continued
        later."""
        page = Page(tuple(pairs.plain), tuple(pairs.changed), tuple(pairs.baseline_ms), pairs.failure)
        self._pages[f"{role}:{pairs.candidate.key}"] = page
        try:
            runs.write_json(self._run, NAME, Book(FORMAT, self._sources, self._pages))
        except Problem:
            return

    def _read(self) -> dict[str, Page]:
        if not (self._run / NAME).is_file():
            return {}
        try:
            book = runs.read(self._run, NAME, Book)
        except Problem:
            return {}
        same = book.format == FORMAT and book.sources == self._sources
        return dict(book.pages) if same else {}
