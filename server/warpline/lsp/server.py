"""The server: what it keeps, and how it starts and ends. The methods are one file each beside this one."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import sys
from typing import Any

from lsprotocol import types
from pygls.capabilities import get_capability
from pygls.lsp.server import LanguageServer

from warpline import __version__
from warpline.lsp import methods
from warpline.lsp.documents import Documents
from warpline.lsp.engine import Engine
from warpline.lsp.folders import Folders
from warpline.lsp.headers import Pipe
from warpline.lsp.loading import Loading
from warpline.lsp.protocol import Answered, Protocol, converter

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


def build() -> Server:
    """A server with all its methods."""
    server = Server()
    methods.register(server)
    return server


def serve(port: int | None = None) -> int:
    """Serve one client, on standard input and output or on ``port`` of 127.0.0.1, until it goes."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="warpline: %(message)s")
    logging.getLogger("pygls").setLevel(logging.CRITICAL)
    # Nothing else may read or write the channel: not a stray print, not a process we start.
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    server = build()
    # An answer of a screenful is thousands of objects, all freed at once: at the usual 700 the collector
    # would look at each answer several times while it is made.
    gc.set_threshold(20_000, 10, 10)
    try:
        if port is None:
            server.start_io(Pipe(requests), answers)  # type: ignore[arg-type]  # pygls reads no more of it
        else:
            from warpline.lsp import tcp

            tcp.serve(server, port)
    except (KeyboardInterrupt, SystemExit):
        pass
    finally:
        server.desk.kill()
        server.folders.kill()
        with contextlib.suppress(OSError):
            answers.close()
    return server.protocol.status
