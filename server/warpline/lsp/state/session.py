"""One run that is shown: its results, and where their lines are now."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from warpline.lsp.state.bars import Bars
from warpline.lsp.state.current_findings import CurrentFindings
from warpline.lsp.state.documents import Document, Documents
from warpline.lsp.state.results import Results, renamed
from warpline.text.lines import key, split
from warpline.view.anchor import Anchor

#: A file that is new has at least this part of its lines from one that is gone: it was renamed.
_ALIKE = 0.7

Stamp = tuple[int, int]


class Session:
    """``results`` is replaced as a whole, never changed."""

    def __init__(self, folder: Path, results: Results, documents: Documents) -> None:
        self.folder = folder
        self.results = self._loaded = (
            results  # as it was read: a notebook's cells get others when it is opened
        )
        self.documents = documents
        self._closed: dict[str, tuple[Stamp, list[str], Anchor]] = {}
        #: (path, line of the run) -> its time in the run that this one is compared with, for the hints.
        self.against: dict[tuple[str, int], float] = {}
        self.stands: dict[str, CurrentFindings] = {}  # kept by standing.py, by path
        self.bars: dict[str, Bars] = {}  # kept by heat.py, by path

    @property
    def loaded(self) -> Results:
        """The results by the files that ran; those of a notebook by its script."""
        return self._loaded

    def adopt(self, document: Document) -> bool:
        """Whether a file that is opened is one of the run's under another name; then it is that one."""
        results, path = self.results, document.path
        if path is None or path in results.sources:
            return False
        now = {key(line) for line in document.lines}
        for file in results.files():
            then = {key(line) for line in split(results.sources.get(file, ""))}
            if not Path(file).exists() and len(now & then) >= _ALIKE * max(len(now), len(then)):
                self.results = renamed(results, file, path)
                self._closed.clear()
                self.stands.clear()
                return True
        return False

    def tell_by_cells(self, notebook: str | None = None) -> bool:
        """Show a notebook's results by its cells while it is open, else by its script. ``notebook``: only if
        it is this one. Returns whether that changed."""
        from warpline.lsp.state import cells  # few runs are of notebooks

        wanted = cells.notebook_of(self._loaded)
        if wanted is None or notebook not in (None, wanted):
            return False
        opened, before = self.documents.cells(wanted), self.results
        self.results = self._loaded if opened is None else cells.in_cells(self._loaded, opened)
        return self.results is not before

    def anchor(self, path: str) -> Anchor | None:
        """Where the run's lines of a file are now, in the editor's text or else in the file's."""
        results = self.results
        if results.text_of(path) is None:
            return None
        document = self.documents.at(path)
        if document is not None:
            return self._of_document(results, document, path)
        return self._of_file(results, path)[1]

    def lines(self, path: str) -> Sequence[str]:
        """The text now, line by line."""
        document = self.documents.at(path)
        if document is not None:
            return document.lines
        if self.results.text_of(path) is None:
            return []
        return self._of_file(self.results, path)[0]

    def _of_document(self, results: Results, document: Document, path: str) -> Anchor:
        name = str(results.run)
        anchor = document.anchors.get(name)
        if anchor is None:
            anchor = document.anchors[name] = Anchor(results.text_of(path) or "", document.lines)
        return anchor

    def _of_file(self, results: Results, path: str) -> tuple[list[str], Anchor]:
        stamp = _stamp(path)
        known = self._closed.get(path)
        if known is None or known[0] != stamp:
            lines = split(_read(path))
            known = self._closed[path] = (stamp, lines, Anchor(results.text_of(path) or "", lines))
        return known[1], known[2]


def _read(path: str) -> str:
    try:
        return Path(path).read_bytes().decode("utf-8-sig", "replace")
    except OSError:
        return ""


def _stamp(path: str) -> Stamp:
    try:
        status = Path(path).stat()
    except OSError:
        return (0, -1)
    return status.st_mtime_ns, status.st_size
