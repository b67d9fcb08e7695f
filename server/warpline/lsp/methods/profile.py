"""warpline/profile and the command warpline.profile: run, follow, cancel, and show the results."""

from __future__ import annotations

import asyncio
import shlex
from pathlib import Path
from typing import Any

import msgspec
from lsprotocol import types

from warpline.lsp import convert
from warpline.lsp.methods import configuration, notebook_script, overview, remedies
from warpline.lsp.methods.request import Refused, last_of, parse, place, request
from warpline.lsp.methods.under_way import commanded, requested, turn, under_way
from warpline.lsp.server import Server
from warpline.lsp.state.session import Session
from warpline.lsp.worker.engine import Engine, Failed
from warpline.model.report import Report
from warpline.runs import runs_folder
from warpline.view import gains

_WAIT, _STOP = "Wait for it", "Stop it and start this one"
#: How long the user has to choose between the two.
ANSWER_S = 120.0


async def on_request(ls: Server, params: Any) -> Any:
    """The request. Its sender follows ``warpline/progress``, or names a token for a progress bar."""
    return await requested(_profile(ls, params, by_command=False))


async def command(ls: Server, *arguments: Any) -> Any:
    """The command; where something runs already the user is asked what to do."""
    argument = arguments[0] if arguments else None
    return await commanded(ls, lambda: _profile(ls, argument, by_command=True))


def cancel(ls: Server, *arguments: Any) -> bool:
    """End the profile of a file's folder, or all of them."""
    path = convert.path(arguments[0]) if arguments and isinstance(arguments[0], str) else None
    home = ls.folders.home(path) if path else None
    ended = [running for folder, running in ls.folders.running.items() if home is None or folder == home]
    stopped = [running.end() for running in ended]  # all of them, not up to the first
    return any(stopped)


def progress_cancelled(ls: Server, params: types.WorkDoneProgressCancelParams) -> None:
    """The client's own cancel button: end the profile with this token."""
    for running in ls.folders.running.values():
        if running.token == params.token:
            running.end()


async def _profile(ls: Server, argument: Any, by_command: bool) -> dict[str, Any]:
    """Run it and load the results. ``by_command``: the user is asked and shown progress by us.

    Raises Refused, Failed.
    """
    params = parse(argument)
    await ls.loading.over()  # the settings: a request may come right after ``initialized``
    path, folder = place(params, ls.folders)
    settings = configuration.settings_for(ls, path)
    home = ls.folders.add(folder)
    when_busy = params.when_busy or settings.when_busy
    if by_command and when_busy != "queue":
        when_busy = await _choice(ls, folder)
    uri = params.uri or convert.uri(path)
    if path.endswith(".ipynb"):
        await turn(ls, folder, when_busy, uri)  # a profile of the same notebook still runs its script
        script = notebook_script.written(ls, path, folder)
        wanted = notebook_script.in_place(request(params, script, folder, settings), path, params)
    else:
        wanted = request(params, path, folder, settings, last_of(ls.folders, path))
    await turn(ls, folder, when_busy, uri)
    title = f"Warpline: {Path(wanted.target).name}"
    work = under_way(ls, folder, uri, params.work_done_token, title, bar=by_command)
    async with work as (engine, progress):
        try:
            answer = await engine.ask(
                "profile",
                progress.report,
                request=msgspec.to_builtins(wanted),
                folder=str(runs_folder(folder)),
            )
        except Failed as error:
            raise _explained(error, wanted.python, engine, folder) from None
    await home.refresh()
    result = _result(ls, folder, answer["run"])
    if by_command:
        ls.show(f"{Path(wanted.target).name}: {result['summary']}", types.MessageType.Info)
    return result


async def _choice(ls: Server, folder: Path) -> str:
    """Ask what to do about what is under way in the folder, as long as anything is. Raises Refused if there
    is not an answer: the question may have been hidden, or not shown."""
    running = ls.folders.running.get(folder)
    if running is None:
        return "queue"
    name = Path(convert.path(running.uri) or running.uri).name
    question = types.ShowMessageRequestParams(
        type=types.MessageType.Info,
        message=f"{name} is being profiled in this folder.",
        actions=[types.MessageActionItem(title=_WAIT), types.MessageActionItem(title=_STOP)],
    )
    answer = asyncio.ensure_future(ls.window_show_message_request_async(question))
    try:
        await asyncio.wait({answer, running.task}, timeout=ANSWER_S, return_when=asyncio.FIRST_COMPLETED)
        if running.task.done():
            return "queue"  # there is nothing left to wait for
        if not answer.done():
            raise Refused(f"{name} is being profiled in this folder: wait for it, or cancel it", "busy")
        choice = answer.result()
    finally:
        answer.cancel()
    if choice is None:
        raise asyncio.CancelledError
    if choice.title == _STOP:
        running.end()
    return "queue"


def _explained(error: Failed, python: str, engine: Engine, folder: Path) -> Failed | Refused:
    """A failure with what can be done about it."""
    said = "\n".join((str(error), *engine.tail))
    if "No module named 'torch'" in said or "has no torch" in said:
        install = remedies.run_in_terminal(f"{shlex.quote(python)} -m pip install torch", "pip install torch")
        return Refused(
            f"{python} has no torch: choose the interpreter of your training, or install torch there",
            "no-torch",
            [install],
        )
    error.remedies = remedies.of_failure(str(error), engine.tail, folder)
    return error


def _result(ls: Server, folder: Path, run: str) -> dict[str, Any]:
    session = ls.folders.add(folder).newest
    if session is None or str(session.results.run) != run:
        raise Failed(f"the run {run} was recorded, but cannot be read", 2)
    results = session.results
    report = results.report
    return {
        "run": run,
        "script": report.script,
        "stepMs": results.step_ms,
        "deviceBusyPercent": report.steps.device_busy_percent,
        "lines": len(report.lines),
        "findings": len(report.findings),
        "notes": list(report.notes),
        "summary": overview.summary(results),
        "best": _best(ls, session, report),
    }


def _best(ls: Server, session: Session, report: Report) -> dict[str, Any] | None:
    """Where to go next: the finding that gains most, else the costliest line. It may be in any file."""
    ranked = sorted(report.findings, key=lambda finding: -(gains.gained(finding) or 0.0))
    places = [(finding.file, finding.line) for finding in ranked]
    places += [(line.file, line.line) for line in report.lines[:1]]
    for file, line in places:
        anchor = session.anchor(file)
        now = anchor.where(line - 1) if anchor is not None else -1
        if now >= 0:
            name = session.results.names.get(file) or Path(file).name
            return {"uri": convert.uri(file), "line": now, "name": f"{name}:{now + 1}"}
    return None
