"""A job that runs the user's script: one at a time per folder, with progress, cancellable, always ended."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcRequestCancelled

from warpline.lsp import convert
from warpline.lsp.methods.output import Output
from warpline.lsp.methods.progress import Progress
from warpline.lsp.methods.request import Refused
from warpline.lsp.server import Server
from warpline.lsp.state.folders import Running
from warpline.lsp.worker.engine import Engine, Failed

Token = int | str | None


@asynccontextmanager
async def under_way(
    ls: Server, folder: Path, uri: str, token: Token, title: str, bar: bool, doing: str = "Profiling"
) -> AsyncIterator[tuple[Engine, Progress]]:
    """A worker for ``folder`` with its progress shown (``bar``: also where the client named no token for
    it); at the end nothing of it is left running. ``doing``: its word in the lens that cancels it."""
    output = Output(ls)
    engine = Engine(output.line)
    task = asyncio.current_task()
    assert task is not None
    running = Running(uri, engine, task, doing)
    progress = Progress(ls, uri, token, title, bar)
    said = "done"
    try:
        ls.folders.started(folder, running)
        running.token = await progress.begin()
        yield engine, progress
    except asyncio.CancelledError:
        said = "cancelled"
        raise
    except Failed:
        said = "failed"
        raise
    finally:
        await _surely(engine.end())
        output.flush()
        progress.end(said)
        ls.folders.ended(folder)


async def _surely(work: Awaitable[None]) -> None:
    """To its end, however often the caller is cancelled meanwhile."""
    end = asyncio.ensure_future(work)
    while not end.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.shield(end)


async def turn(ls: Server, folder: Path, when_busy: str, uri: str) -> None:
    """Wait until nothing else runs in the folder. Raises Refused if ``when_busy`` is not "queue"."""
    while (running := ls.folders.running.get(folder)) is not None:
        name = Path(convert.path(running.uri) or running.uri).name
        if when_busy != "queue":
            raise Refused(f"{name} is being profiled in this folder: wait for it, or cancel it", "busy")
        notice = {"uri": uri, "stage": "queued", "done": 0, "total": None, "message": f"waiting for {name}"}
        ls.protocol.notify("warpline/progress", notice)
        await asyncio.wait([running.task])


async def commanded(ls: Server, work: Callable[[], Awaitable[Any]]) -> Any:
    """``work`` as a command: what goes wrong is shown to the user; the client's cancel ends it."""
    msg_id = ls.protocol.msg_id
    task = asyncio.ensure_future(work())
    if msg_id is not None:
        ls.protocol.on_cancel[msg_id] = task.cancel
    try:
        return await task
    except asyncio.CancelledError:
        return None
    except (Refused, Failed) as error:
        if not isinstance(error, Failed) or error.status != 130:
            ls.start(_told(ls, str(error), error.remedies))
        return None
    finally:
        if msg_id is not None:
            ls.protocol.on_cancel.pop(msg_id, None)


async def _told(ls: Server, message: str, remedies: list[dict[str, Any]]) -> None:
    """Show what went wrong, with the line of the script to go to where the client can go there."""
    places = {one["title"]: one["arguments"][0] for one in remedies if one["command"] == "warpline.goTo"}
    if not places or not ls.can("window.show_document.support"):
        ls.show(message)
        return
    question = types.ShowMessageRequestParams(
        type=types.MessageType.Error,
        message=message,
        actions=[types.MessageActionItem(title=title) for title in places],
    )
    choice = await ls.window_show_message_request_async(question)
    if choice is not None and choice.title in places:
        place = places[choice.title]
        at = convert.line_start(place["line"])
        await ls.window_show_document_async(
            types.ShowDocumentParams(uri=place["uri"], take_focus=True, selection=types.Range(at, at))
        )


async def requested(work: Awaitable[Any]) -> Any:
    """``work`` as a request of our own, which pygls cancels by cancelling its coroutine."""
    try:
        return await asyncio.ensure_future(work)
    except asyncio.CancelledError:
        raise JsonRpcRequestCancelled(message="cancelled") from None
    except (Refused, Failed) as error:
        raise error.answer() from None


def entrances(
    work: Callable[[Server, Any, bool], Coroutine[Any, Any, dict[str, Any]]], said: str = "{summary}"
) -> tuple[Callable[..., Awaitable[Any]], Callable[..., Awaitable[Any]]]:
    """``work(ls, argument, bar)`` as a request of our own and as a command, which shows
    ``said`` of its answer."""

    async def on_request(ls: Server, params: Any) -> Any:
        return await requested(work(ls, params, False))

    async def command(ls: Server, *arguments: Any) -> Any:
        found = await commanded(ls, lambda: work(ls, arguments[0] if arguments else None, True))
        if found is not None:
            ls.show(said.format_map(found), types.MessageType.Info)
        return found

    return on_request, command
