"""notebookDocument/…: the notebooks that are open, with their code cells in order.

Each cell is a document of its own, kept with the others; its URI stands for its path.
"""

from __future__ import annotations

from lsprotocol import types

from warpline.lsp import convert
from warpline.lsp.methods import configuration
from warpline.lsp.server import Server


async def did_open(ls: Server, params: types.DidOpenNotebookDocumentParams) -> None:
    """protocol.py has stored the cells by now: a change to them may arrive in the same packet."""
    path = convert.path(params.notebook_document.uri)
    if path is None:
        return
    home = ls.folders.home(path)
    if home not in {folder.path for folder in ls.folders}:
        ls.folders.add(home)
        await configuration.with_results(ls)
    _tell(ls, path)


def did_change(ls: Server, params: types.DidChangeNotebookDocumentParams) -> None:
    """Cells were added, removed, moved or edited."""
    cells = ls.documents.notebooks.get(convert.path(params.notebook_document.uri) or "")
    changed = params.change.cells
    if cells is None or changed is None:
        return
    if changed.structure is not None:
        for opened in changed.structure.did_open or ():
            ls.documents.open(opened)
        for closed in changed.structure.did_close or ():
            ls.documents.close(closed.uri)
        array = changed.structure.array
        new = [cell.document for cell in array.cells or ()]
        cells[array.start : array.start + array.delete_count] = new
    for content in changed.text_content or ():
        ls.documents.change(
            types.DidChangeTextDocumentParams(text_document=content.document, content_changes=content.changes)
        )


def did_close(ls: Server, params: types.DidCloseNotebookDocumentParams) -> None:
    """A notebook was closed; its results are those of the saved file again."""
    for cell in params.cell_text_documents:
        ls.documents.close(cell.uri)
    path = convert.path(params.notebook_document.uri)
    if path is not None:
        ls.documents.notebooks.pop(path, None)
        _tell(ls, path)


def _tell(ls: Server, notebook: str) -> None:
    for folder in ls.folders:
        folder.tell_by_cells(notebook)
