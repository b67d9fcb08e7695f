"""warpline/profile and the command warpline.profile: run, follow, cancel, and show what came of it."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import msgspec
from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcRequestCancelled

from warpline.lsp import configuration, convert, refresh
from warpline.lsp.engine import Engine, Failed
from warpline.lsp.folders import Running
from warpline.lsp.output import Output
from warpline.lsp.progress import Progress
from warpline.lsp.request import ProfileParams, Refused, parse, place, request
from warpline.lsp.server import Server
from warpline.runs import runs_folder

_WAIT, _STOP = "Wait for it", "Stop it and start this one"


def register(server: Server) -> None:
    server.feature("warpline/profile")(asked)
    server.command("warpline.profile")(commanded)
    server.command("warpline.cancel")(cancel)
    server.feature(types.WINDOW_WORK_DONE_PROGRESS_CANCEL)(progress_cancelled)


async def asked(ls: Server, params: Any) -> dict[str, Any]:
    """The request. pygls cancels this coroutine on ``$/cancelRequest``, and the profile with it."""
    try:
        parsed = parse(params)
        return await _task(profile(ls, parsed, parsed.work_done_token))
    except asyncio.CancelledError:
        raise JsonRpcRequestCancelled(message="cancelled") from None
    except (Refused, Failed) as error:
        raise failure(error) from None


async def commanded(ls: Server, *arguments: Any) -> dict[str, Any] | None:
    """The command: what goes wrong is shown to the user, and asked about where there is a choice."""
    msg_id = ls.protocol.msg_id
    argument = arguments[0] if arguments else None
    try:
        parsed = parse(argument)
        await _make_room(ls, parsed)
        task = _task(profile(ls, parsed, parsed.work_done_token))
        if msg_id is not None:
            ls.protocol.on_cancel[msg_id] = task.cancel
        return await task
    except asyncio.CancelledError:
        return None
    except (Refused, Failed) as error:
        ls.show(str(error))
        return None
    finally:
        if msg_id is not None:
            ls.protocol.on_cancel.pop(msg_id, None)


def cancel(ls: Server, *arguments: Any) -> bool:
    """End the profile of a file's folder, or all of them."""
    path = convert.path(arguments[0]) if arguments and isinstance(arguments[0], str) else None
    home = ls.folders.home(path) if path else None
    ended = [running for folder, running in ls.folders.running.items() if home is None or folder == home]
    for running in ended:
        running.task.cancel()
    return bool(ended)


def progress_cancelled(ls: Server, params: types.WorkDoneProgressCancelParams) -> None:
    for running in ls.folders.running.values():
        if running.token == params.token:
            running.task.cancel()


async def profile(ls: Server, params: ProfileParams, token: int | str | None) -> dict[str, Any]:
    """Run it and load what came of it. Raises Refused, Failed."""
    path, folder = place(params, ls.folders)
    session = ls.folders.add(folder)
    settings = configuration.of(ls, path)
    wanted = request(params, path, folder, settings)
    uri = params.uri or convert.uri(path)
    await _turn(ls, folder, params.when_busy or settings.when_busy, uri)
    output = Output(ls)
    engine = Engine(output.line)
    task = asyncio.current_task()
    assert task is not None
    running = ls.folders.running[folder] = Running(uri, engine, task)
    progress = Progress(ls, uri, token, f"Warpline: {Path(wanted.target).name}")
    try:
        refresh.lenses(ls)
        running.token = await progress.begin()
        answer = await engine.ask(
            "profile",
            progress.report,
            request=msgspec.to_builtins(wanted),
            folder=str(runs_folder(folder)),
        )
    except asyncio.CancelledError:
        progress.end("cancelled")
        raise
    except Failed as error:
        progress.end("failed")
        raise _explained(error, wanted.python, engine) from None
    finally:
        await engine.end()
        output.flush()
        ls.folders.running.pop(folder, None)
        progress.end("done")
        refresh.lenses(ls)
    if await session.refresh():
        refresh.announce(ls, session)
        refresh.shown(ls)
    return _result(ls, folder, answer["run"])


def failure(error: Refused | Failed) -> JsonRpcException:
    """An error answer with its reason, as PROTOCOL.md has it."""
    if isinstance(error, Failed) and error.status == 130:
        return JsonRpcRequestCancelled(message=str(error))
    reason = error.reason if isinstance(error, Refused) else "no-steps" if error.status == 1 else "failed"
    data: dict[str, Any] = {"reason": reason}
    if reason in ("no-python", "no-torch"):
        data["remedy"] = {
            "title": "Choose an interpreter",
            "command": "python.setInterpreter",
            "arguments": [],
        }
    code = types.ErrorCodes.InvalidParams if str(error).startswith("wrong param") else None
    return JsonRpcException(str(error), (code or types.LSPErrorCodes.RequestFailed).value, data)


def _task(work: Any) -> asyncio.Task[dict[str, Any]]:
    return asyncio.ensure_future(work)


async def _turn(ls: Server, folder: Path, when_busy: str, uri: str) -> None:
    """Wait until nothing else is profiled in the folder, or refuse."""
    while (running := ls.folders.running.get(folder)) is not None:
        name = Path(convert.path(running.uri) or running.uri).name
        if when_busy != "queue":
            raise Refused(f"{name} is being profiled in this folder: wait for it, or cancel it", "busy")
        notice = {"uri": uri, "stage": "queued", "done": 0, "total": None, "message": f"after {name}"}
        ls.protocol.notify("warpline/progress", notice)
        await asyncio.wait([running.task])


async def _make_room(ls: Server, params: ProfileParams) -> None:
    """Ask what to do about a profile that is under way."""
    path, folder = place(params, ls.folders)
    running = ls.folders.running.get(folder)
    busy = params.when_busy or configuration.of(ls, path).when_busy
    if running is None or busy == "queue":
        return
    name = Path(convert.path(running.uri) or running.uri).name
    choice = await ls.window_show_message_request_async(
        types.ShowMessageRequestParams(
            type=types.MessageType.Info,
            message=f"{name} is being profiled in this folder.",
            actions=[types.MessageActionItem(title=_WAIT), types.MessageActionItem(title=_STOP)],
        )
    )
    if choice is None:
        raise asyncio.CancelledError
    params.when_busy = "queue"
    if choice.title == _STOP:
        running.task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait([running.task])


def _explained(error: Failed, python: str, engine: Engine) -> Failed | Refused:
    """A failure whose remedy is known is said with it."""
    said = "\n".join((str(error), *engine.tail))
    if "No module named 'torch'" in said or "has no torch" in said:
        return Refused(
            f"{python} has no torch: choose the interpreter that your training runs with", "no-torch"
        )
    return error


def _result(ls: Server, folder: Path, run: str) -> dict[str, Any]:
    session = ls.folders.add(folder)
    results = session.results
    if results is None or str(results.run) != run:
        raise Failed(f"the run {run} was made, and cannot be read", 2)
    report = results.report
    return {
        "run": run,
        "script": report.script,
        "stepMs": results.step_ms,
        "deviceBusyPercent": report.steps.device_busy_percent,
        "lines": len(report.lines),
        "findings": len(report.findings),
        "notes": list(report.notes),
    }
