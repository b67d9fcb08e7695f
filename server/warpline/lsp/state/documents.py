"""The open documents as the client has them, and the anchors that follow their edits.

pygls keeps documents too, but splits lines where LSP does not (form feed, U+2028, …) and joins the
whole text on every keystroke.
"""

from __future__ import annotations

from collections.abc import Iterator

from lsprotocol import types

from warpline.lsp import convert
from warpline.text.lines import content, split
from warpline.view.anchor import Anchor


class Document:
    """One open text: ``lines`` with their ends, ``anchors`` by run folder."""

    def __init__(self, uri: str, text: str, version: int, language: str) -> None:
        self.uri = uri
        self.path = convert.path(uri)
        self.version: int | None = version
        self.language = language
        self.lines = split(text)
        self.anchors: dict[str, Anchor] = {}

    @property
    def text(self) -> str:
        """The whole text, with the client's own line ends."""
        return "".join(self.lines)

    @property
    def end(self) -> str:
        """The line end that the document uses."""
        first = self.lines[0]
        return first[len(content(first)) :] or "\n"

    def change(self, changes: list[types.TextDocumentContentChangeEvent], codec: convert.Codec) -> None:
        """Apply the client's edits in order, and move the anchors with their lines."""
        for change in changes:
            if isinstance(change, types.TextDocumentContentChangePartial):
                self._replace(change, codec)
            else:
                self._splice(0, len(self.lines), split(change.text), head=False, tail=False)
        for anchor in self.anchors.values():
            anchor.settle()

    def _replace(self, change: types.TextDocumentContentChangePartial, codec: convert.Codec) -> None:
        last = len(self.lines) - 1
        start, end = change.range.start, change.range.end
        if (end.line, end.character) < (start.line, start.character):
            start, end = end, start
        first = min(start.line, last)
        final = min(end.line, last)
        column = codec.column(self.lines[first], start.character if start.line <= last else 2**31)
        until = codec.column(self.lines[final], end.character if end.line <= last else 2**31)
        before, after = self.lines[first][:column], self.lines[final][until:]
        text = before + change.text + after
        if first and text.startswith("\n") and self.lines[first - 1].endswith("\r"):
            first -= 1
            text = self.lines[first] + text
        lines = split(text)
        if final < last:
            lines.pop()
        self._splice(first, final - first + 1, lines, head=bool(before.strip()), tail=bool(after.strip()))

    def _splice(self, start: int, removed: int, lines: list[str], *, head: bool, tail: bool) -> None:
        self.lines[start : start + removed] = lines
        for anchor in self.anchors.values():
            anchor.splice(start, removed, lines, head, tail)


class Documents:
    """Open documents by path where they have one, by URI where not."""

    def __init__(self) -> None:
        self.codec = convert.Codec()
        #: Of each open notebook, by its path, the URIs of its code cells in order.
        self.notebooks: dict[str, list[str]] = {}
        self._open: dict[str, Document] = {}

    def __iter__(self) -> Iterator[Document]:
        return iter(tuple(self._open.values()))

    def get(self, uri: str) -> Document | None:
        """The open document with this URI, or None."""
        return self._open.get(_name(uri))

    def cells(self, notebook: str) -> list[Document] | None:
        """The code cells of an open notebook; None when it is not open."""
        uris = self.notebooks.get(notebook)
        return None if uris is None else [self._open[uri] for uri in uris if uri in self._open]

    def at(self, path: str) -> Document | None:
        """The open document with this path, or None."""
        return self._open.get(path)

    def open(self, item: types.TextDocumentItem) -> Document:
        """Keep a document that the client has opened."""
        document = Document(item.uri, item.text, item.version, item.language_id)
        self._open[_name(item.uri)] = document
        return document

    def open_notebook(self, params: types.DidOpenNotebookDocumentParams) -> None:
        """Keep a notebook's cells, in order. One that is no file is left out."""
        path = convert.path(params.notebook_document.uri)
        if path is None:
            return
        for cell in params.cell_text_documents:
            self.open(cell)
        self.notebooks[path] = [cell.document for cell in params.notebook_document.cells]

    def change(self, params: types.DidChangeTextDocumentParams) -> Document | None:
        """Apply edits to an open document; None where it is not open."""
        document = self.get(params.text_document.uri)
        if document is not None:
            document.change(list(params.content_changes), self.codec)
            document.version = params.text_document.version
        return document

    def close(self, uri: str) -> Document | None:
        """Forget a document; None where it was not open."""
        return self._open.pop(_name(uri), None)


def _name(uri: str) -> str:
    return convert.path(uri) or uri
