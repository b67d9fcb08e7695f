"""The server of one client: its state, its protocol, and how it talks to the client."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.capabilities import get_capability
from pygls.lsp.server import LanguageServer

from warpline import __version__
from warpline.lsp.protocol import Answered, Protocol, converter
from warpline.lsp.state.documents import Documents
from warpline.lsp.state.folders import Folders
from warpline.lsp.state.loading import Loading
from warpline.lsp.worker.engine import Engine

logger = logging.getLogger(__name__)


#: Only code cells: the places in ``notebookDocument/didChange`` count those that are synchronized.
NOTEBOOKS = types.NotebookDocumentSyncOptions(
    notebook_selector=[
        types.NotebookDocumentFilterWithNotebook(
            notebook=types.NotebookDocumentFilterNotebookType(notebook_type="jupyter-notebook"),
            cells=[types.NotebookCellLanguage(language="python")],
        )
    ]
)


class Server(LanguageServer):
    """One client's server. ``folders`` are its sessions, ``desk`` the worker for fixes and pages."""

    protocol: Protocol

    def __init__(self) -> None:
        super().__init__(
            "warpline",
            __version__,
            text_document_sync_kind=types.TextDocumentSyncKind.Incremental,
            notebook_document_sync=NOTEBOOKS,
            protocol_cls=Protocol,
            converter_factory=converter,
        )
        self.documents = Documents()
        self.folders = Folders(self.documents)
        self.desk = Engine(self.log, idle_s=120.0)
        self.loading = Loading()
        self.pushes = False  # diagnostics: the client cannot pull
        self.pushed_files: set[str] = set()  # that the client was sent diagnostics of
        self.push_timers: dict[str, asyncio.TimerHandle] = {}  # by path: sent when typing pauses
        self.pages_asked_for: set[str] = set()  # rules with a page requested from the worker
        #: Kept by torch_use.py.
        self.torch_projects: dict[Path, tuple[tuple[int, ...], bool]] = {}
        self.background: set[asyncio.Task[Any]] = set()

    def offers(self) -> dict[str, Any]:
        """What PROTOCOL.md says beyond LSP, for the client to see what there is."""
        requests = sorted(name for name in self.protocol.fm.features if name.startswith("warpline/"))
        return {"protocol": 1, "measure": "warpline/measure" in requests, "requests": requests}

    def can(self, capability: str) -> Any:
        """What the client says of a capability, by its dotted path; None when it says nothing."""
        return get_capability(self.client_capabilities, capability)

    def log(self, message: str) -> None:
        """A line for the client's log."""
        self.window_log_message(types.LogMessageParams(type=types.MessageType.Log, message=message))

    def show(self, message: str, kind: types.MessageType = types.MessageType.Error) -> None:
        """A line for the user."""
        self.window_show_message(types.ShowMessageParams(type=kind, message=message))

    def start(self, work: Any) -> None:
        """Run a coroutine beside the requests; its failure is logged."""
        task = asyncio.ensure_future(work)
        self.background.add(task)
        task.add_done_callback(self._ended)

    def report_server_error(self, error: Exception, source: Any) -> None:
        """A client's mistakes are for the log, not for the user's screen."""
        if not isinstance(error, Answered):
            logger.error("%s: %s", type(error).__name__, error)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self.background.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("in the background: %r", error, exc_info=error)
