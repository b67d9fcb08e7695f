"""pygls' JSON-RPC with the parts that it lacks.

- malformed requests are answered with an error, where pygls shows a message and leaves the client waiting;
- ``$/cancelRequest`` reaches a running command, where pygls only answers the client;
- parameters of our own requests arrive as the plain JSON they were;
- a request after ``shutdown`` is answered with an error;
- a result that is JSON already (:class:`Written`) is sent as it is;
- documents are kept by :mod:`warpline.lsp.state.documents`.
"""

from __future__ import annotations

import inspect
import json
import logging
import typing
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams, JsonRpcInvalidRequest
from pygls.protocol import (
    JsonRPCNotification,
    JsonRPCRequestMessage,
    JsonRPCResponseMessage,
    LanguageServerProtocol,
    default_converter,
    lsp_method,
)

from warpline.lsp.state.documents import Documents

if TYPE_CHECKING:
    from cattrs import Converter

logger = logging.getLogger(__name__)


def converter() -> Converter:
    """lsprotocol's converter; messages it does not know keep plain JSON parameters."""
    made: Converter = default_converter()  # type: ignore[no-untyped-call]  # pygls leaves it untyped
    for kind in (JsonRPCRequestMessage, JsonRPCResponseMessage, JsonRPCNotification):
        made.register_structure_hook(kind, _plain)
    return made


def _plain(message: dict[str, Any], kind: type[Any]) -> Any:
    known = kind.__annotations__
    fields = {name: message.get(name) for name in known}
    return kind(**fields)


class Host(typing.Protocol):
    """What the protocol needs of the server."""

    documents: Documents

    def offers(self) -> dict[str, Any]:
        """The capabilities that go beyond LSP, for the client."""

    def start(self, work: Any) -> None:
        """Run a coroutine in the background, held until it ends."""


class Protocol(LanguageServerProtocol):
    """One connection. ``server`` is a LanguageServer that is a :class:`Host` too."""

    def __init__(self, server: Any, converter: Converter) -> None:
        self._host: Host = server
        super().__init__(server, converter)
        #: What the process ends with: 1 where ``exit`` came without ``shutdown``.
        self.status = 0
        #: request id -> what ends the work behind it
        self.on_cancel: dict[str | int, Callable[[], object]] = {}

    def _send_response(
        self, msg_id: str | int, result: Any = None, error: types.ResponseError | None = None
    ) -> None:
        if error is not None or not isinstance(result, Written):
            super()._send_response(msg_id, result, error)
            return
        self._result_types.pop(msg_id, None)
        body = f'{{"jsonrpc": "2.0", "id": {json.dumps(msg_id)}, "result": {result.text}}}'.encode()
        if self.writer is not None:
            sent = self.writer.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
            if inspect.isawaitable(sent):
                self._host.start(sent)

    @lsp_method(types.INITIALIZE)
    def lsp_initialize(self, params: types.InitializeParams) -> Generator[Any, Any, types.InitializeResult]:
        result = yield from super().lsp_initialize(params)
        result.capabilities.experimental = {"warpline": self._host.offers()}
        return result

    def structure_message(self, data: dict[str, Any]) -> Any:
        """Like pygls, but a malformed request is answered as such and not as an internal error."""
        try:
            return super().structure_message(data)
        except JsonRpcException as error:
            if "id" not in data or "method" not in data:
                raise
            logger.warning("request %r (%s) is malformed", data["id"], data["method"])
            wrong = JsonRpcInvalidParams(message=f"malformed parameters of {data['method']}")
            self._send_response(data["id"], error=wrong.to_response_error())
            raise Answered from error

    def handle_message(self, message: Any) -> None:
        """Like pygls, but after ``shutdown`` only ``exit`` is taken; an ``exit`` before it means status 1."""
        if not hasattr(message, "jsonrpc"):
            raise JsonRpcInvalidRequest(message="not a JSON-RPC 2.0 message")
        if getattr(message, "method", "") == types.EXIT and not self._shutdown:
            self.status = 1
        if self._shutdown and hasattr(message, "id") and hasattr(message, "method"):
            error = JsonRpcInvalidRequest(message=f"{message.method} after shutdown: only exit may follow")
            self._send_response(message.id, error=error.to_response_error())
            return
        super().handle_message(message)

    def _handle_request(self, msg_id: str | int, method_name: str, params: Any) -> None:
        if self._workspace is None and method_name not in (types.INITIALIZE, types.SHUTDOWN):
            error = types.ResponseError(
                code=types.ErrorCodes.ServerNotInitialized, message="initialize comes first"
            )
            self._send_response(msg_id, error=error)
            return
        super()._handle_request(msg_id, method_name, params)

    def _handle_cancel_notification(self, msg_id: str | int) -> None:
        end = self.on_cancel.pop(msg_id, None)
        super()._handle_cancel_notification(msg_id)
        if end is not None:
            end()

    @lsp_method(types.TEXT_DOCUMENT_DID_OPEN)
    def lsp_text_document__did_open(
        self, params: types.DidOpenTextDocumentParams
    ) -> Generator[Any, Any, None]:
        self._host.documents.open(params.text_document)
        yield self.fm.features[types.TEXT_DOCUMENT_DID_OPEN], (params,), None

    @lsp_method(types.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(
        self, params: types.DidChangeTextDocumentParams
    ) -> Generator[Any, Any, None]:
        self._host.documents.change(params)
        yield self.fm.features[types.TEXT_DOCUMENT_DID_CHANGE], (params,), None

    @lsp_method(types.TEXT_DOCUMENT_DID_CLOSE)
    def lsp_text_document__did_close(
        self, params: types.DidCloseTextDocumentParams
    ) -> Generator[Any, Any, None]:
        self._host.documents.close(params.text_document.uri)
        yield self.fm.features[types.TEXT_DOCUMENT_DID_CLOSE], (params,), None

    @lsp_method(types.NOTEBOOK_DOCUMENT_DID_OPEN)
    def lsp_notebook_document__did_open(
        self, params: types.DidOpenNotebookDocumentParams
    ) -> Generator[Any, Any, None]:
        self._host.documents.open_notebook(params)
        yield self.fm.features[types.NOTEBOOK_DOCUMENT_DID_OPEN], (params,), None

    @lsp_method(types.NOTEBOOK_DOCUMENT_DID_CHANGE)
    def lsp_notebook_document__did_change(
        self, params: types.DidChangeNotebookDocumentParams
    ) -> Generator[Any, Any, None]:
        yield self.fm.features[types.NOTEBOOK_DOCUMENT_DID_CHANGE], (params,), None

    @lsp_method(types.NOTEBOOK_DOCUMENT_DID_CLOSE)
    def lsp_notebook_document__did_close(
        self, params: types.DidCloseNotebookDocumentParams
    ) -> Generator[Any, Any, None]:
        yield self.fm.features[types.NOTEBOOK_DOCUMENT_DID_CLOSE], (params,), None


@dataclass(frozen=True)
class Written:
    """A result that is JSON already. Large ones are: pygls and cattrs take several µs for every field."""

    text: str


class Answered(Exception):
    """A malformed request that was already answered; it is not reported twice."""
