"""Every method and command, and where it is. Handlers are imported when they are first called.

Start-up is imports: ``initialize`` is answered before anything is loaded that only results need. Right
after it everything is (``load``), so that the first hover does not wait either.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from lsprotocol import types

if TYPE_CHECKING:
    from warpline.lsp.server import Server


@dataclass(frozen=True)
class Method:
    name: str
    module: str  # in this package
    function: str
    waits: bool = False  # a coroutine, which the client can cancel
    options: Any = None


FIX_ALL = "source.fixAll.warpline"

METHODS = (
    Method(types.INITIALIZE, "initialize", "initialize"),
    Method(types.INITIALIZED, "lifetime", "initialized", waits=True),
    Method(types.SHUTDOWN, "lifetime", "shutdown", waits=True),
    Method(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS, "lifetime", "folders_changed"),
    Method(types.WORKSPACE_DID_CHANGE_CONFIGURATION, "configuration", "changed", waits=True),
    Method(types.TEXT_DOCUMENT_DID_OPEN, "text_document", "did_open", waits=True),
    Method(types.TEXT_DOCUMENT_DID_CHANGE, "text_document", "did_change"),
    Method(types.TEXT_DOCUMENT_DID_CLOSE, "text_document", "did_close"),
    Method(types.TEXT_DOCUMENT_DID_SAVE, "text_document", "did_save", waits=True),
    Method(types.NOTEBOOK_DOCUMENT_DID_OPEN, "notebooks", "did_open", waits=True),
    Method(types.NOTEBOOK_DOCUMENT_DID_CHANGE, "notebooks", "did_change"),
    Method(types.NOTEBOOK_DOCUMENT_DID_CLOSE, "notebooks", "did_close"),
    Method(types.TEXT_DOCUMENT_HOVER, "hover", "hover"),
    Method(
        types.TEXT_DOCUMENT_INLAY_HINT,
        "inlay_hint",
        "inlay_hint",
        waits=True,
        options=types.InlayHintOptions(resolve_provider=True),
    ),
    Method(types.INLAY_HINT_RESOLVE, "inlay_hint", "resolve"),
    Method(
        types.TEXT_DOCUMENT_CODE_LENS,
        "code_lens",
        "code_lens",
        waits=True,
        options=types.CodeLensOptions(resolve_provider=False),
    ),
    Method(
        types.TEXT_DOCUMENT_CODE_ACTION,
        "code_action",
        "code_action",
        waits=True,
        options=types.CodeActionOptions(
            code_action_kinds=[types.CodeActionKind.QuickFix, FIX_ALL], resolve_provider=True
        ),
    ),
    Method(types.CODE_ACTION_RESOLVE, "code_action", "resolve", waits=True),
    Method(types.WINDOW_WORK_DONE_PROGRESS_CANCEL, "profile", "progress_cancelled"),
    Method("warpline/profile", "profile", "on_request", waits=True),
    Method("warpline/measure", "measure", "on_request", waits=True),
    Method("warpline/apply", "measure", "apply", waits=True),
    Method("warpline/tune", "tune", "on_request", waits=True),
    Method("warpline/kernel", "kernel", "on_request", waits=True),
    Method("warpline/heat", "heat", "heat"),
    Method("warpline/overview", "overview", "overview"),
    Method("warpline/runs", "runs_view", "listed", waits=True),
    Method("warpline/openRun", "runs_view", "opened", waits=True),
    Method("warpline/page", "report_page", "page", waits=True),
    Method("warpline/place", "report_page", "place"),
    Method("warpline/compare", "compare", "compare", waits=True),
)
COMMANDS = (
    Method("warpline.profile", "profile", "command", waits=True),
    Method("warpline.cancel", "profile", "cancel"),
    Method("warpline.measure", "measure", "command", waits=True),
    Method("warpline.tune", "tune", "command", waits=True),
    Method("warpline.kernel", "kernel", "command", waits=True),
    Method("warpline.explain", "commands", "explain", waits=True),
    Method("warpline.overview", "commands", "show"),
)
#: Only for clients that can pull; the others are pushed to.
PULL = Method(types.TEXT_DOCUMENT_DIAGNOSTIC, "diagnostic", "pull", waits=True)
PULL_ALL = Method(types.WORKSPACE_DIAGNOSTIC, "diagnostic", "pull_all", waits=True)


def register(server: Server) -> None:
    """Offer every method and command of the tables."""
    for method in METHODS:
        offer(server, method)
    for command in COMMANDS:
        server.command(command.name)(_handler(command))


def offer(server: Server, method: Method) -> None:
    """Offer one method, also after the start."""
    server.feature(method.name, method.options)(_handler(method))


def offer_pull(server: Server, of_all_files: bool) -> None:
    """Diagnostics to be pulled; ``of_all_files``: also those of files that are not open."""
    options = types.DiagnosticOptions(
        identifier="warpline", inter_file_dependencies=True, workspace_diagnostics=of_all_files
    )
    offer(server, replace(PULL, options=options))
    if of_all_files:
        offer(server, PULL_ALL)


def load() -> None:
    """Import all handlers now."""
    for method in (*METHODS, *COMMANDS, PULL, PULL_ALL):
        _function(method)


def _handler(method: Method) -> Callable[..., Any]:
    # pygls evaluates a handler's annotations, so none may name what is only imported for checking.
    if method.waits:

        async def waiting(ls: Any, *arguments: Any) -> Any:
            return await _function(method)(ls, *arguments)

        return waiting

    def direct(ls: Any, *arguments: Any) -> Any:
        return _function(method)(ls, *arguments)

    return direct


def _function(method: Method) -> Callable[..., Any]:
    found: Callable[..., Any] = getattr(
        import_module(f"warpline.lsp.methods.{method.module}"), method.function
    )
    return found
