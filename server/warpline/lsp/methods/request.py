"""Converts a client's ProfileParams (PROTOCOL.md) to a Request."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams

from warpline import runs
from warpline.capture import interpreter
from warpline.lsp import convert
from warpline.lsp.methods import launching
from warpline.lsp.methods.remedies import CHOOSE_INTERPRETER, Remedy
from warpline.lsp.state.folders import Folders
from warpline.lsp.state.settings import Settings
from warpline.lsp.worker.engine import could_not
from warpline.model.problem import Problem
from warpline.wire.run import Request

T = TypeVar("T")


class ProfileParams(msgspec.Struct, rename="camel"):
    """Fields as PROTOCOL.md has them."""

    uri: str | None = None
    module: str | None = None
    args: list[str] | None = None
    python: str | None = None
    launcher: str | list[str] | None = None
    cwd: str | None = None
    env: dict[str, str] | None = None
    steps: int | None = None
    warmup: int | None = None
    whole_run: bool = False
    timeout: float | None = None
    include: list[str] | None = None
    launch: dict[str, Any] | None = None
    again: str | None = None
    when_busy: str | None = None
    work_done_token: int | str | None = None


class Refused(Exception):
    """A profile that is not begun. ``reason`` as in PROTOCOL.md."""

    def __init__(self, message: str, reason: str = "refused", remedies: Sequence[Remedy] = ()) -> None:
        super().__init__(message)
        self.reason = reason
        self.remedies = [*remedies]
        if reason in ("no-python", "no-torch"):
            self.remedies.insert(0, CHOOSE_INTERPRETER)

    def answer(self) -> JsonRpcException:
        """The error that answers a request."""
        if self.reason == "parameters":
            return JsonRpcInvalidParams(message=str(self))
        return could_not(str(self), self.reason, self.remedies)


def parse(value: object) -> ProfileParams:
    """Read the parameters of a request, or the argument of a command (which may be a URI). Raises Refused."""
    if isinstance(value, str):
        return ProfileParams(uri=value)
    return parameters(value or {}, ProfileParams)


def parameters(value: object, kind: type[T]) -> T:
    """What a client sent, as PROTOCOL.md has it. Raises Refused."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise Refused(f"wrong parameters: {error}", "parameters") from None


def place(params: ProfileParams, folders: Folders) -> tuple[str, Path]:
    """The file that is meant and the folder that it is profiled in. Raises Refused."""
    if params.uri is None:
        program = (params.launch or {}).get("program")
        if isinstance(program, str) and Path(program).is_absolute():
            return program, folders.home(program)
        if folders.workspace and (params.module or params.launch):
            return str(folders.workspace[0] / "_"), folders.workspace[0]
        raise Refused("say which file to profile")
    path = convert.path(params.uri)
    if path is not None:
        path = convert.on_disk(path)
    if path is None:
        scheme = params.uri.split(":", 1)[0]
        raise Refused(
            "save the file first: only a file on disk can be run"
            if scheme == "untitled"
            else f"only files on this machine can be run, not {scheme}:"
        )
    # A run that was made in a terminal may lie in a folder below.
    its_own = Path(params.again).parent.parent.parent if params.again is not None else None
    return path, its_own if its_own is not None and folders.get(its_own) else folders.home(path)


def request(
    params: ProfileParams, path: str, folder: Path, settings: Settings, shown: Request | None = None
) -> Request:
    """Everything that is needed to run it. ``shown``: how the run of this file was made that is shown; None:
    none is. Raises Refused."""
    if params.again is not None:
        return _complete(_again(params, params.again, folder, settings))
    try:
        launch = launching.configuration(params.launch or {}, path, folder)
    except launching.Unresolved as error:
        name = str((params.launch or {}).get("name") or "the launch configuration")
        raise Refused(f"{name}: {error}") from None
    module = params.module or launch.get("module")
    last = None  # a configuration says all of it
    if not launch:
        last = shown if shown is not None and module is None else last_request(folder, module or path)
    if last is not None and last.module and params.module is None:
        module = last.target  # the file was run as a module of its package: as a script it would not import
    target = module or (str(launch["program"]) if launch.get("program") else path)
    if module is None and not Path(target).is_file():
        raise Refused(f"there is no file {target}: save it first")
    args = params.args if params.args is not None else launch.get("args")
    names = launching.variables(path, folder)
    try:
        python = launching.interpreter(params.python or launch.get("python") or settings.python, path, folder)
        environment = launching.replaced(dict(settings.env), names)
        own = launching.replaced(list(settings.launcher), names)
    except launching.Unresolved as error:
        raise Refused(f"settings: {error}") from None
    made = Request(
        target=target,
        module=module is not None,
        argv=tuple(args if args is not None else last.argv if last is not None else ()),
        cwd=params.cwd or launch.get("cwd") or _cwd(last) or str(folder),
        python=python,
        launcher=_launcher(params, launch.get("launcher", own), last),
        environment={**environment, **launch.get("env", {}), **(params.env or {})},
        steps=params.steps or settings.steps,
        warmup=params.warmup if params.warmup is not None else settings.warmup,
        whole_run=params.whole_run,
        timeout_s=params.timeout or settings.timeout,
        include=tuple(params.include if params.include is not None else settings.include),
    )
    return _complete(made)


def _again(params: ProfileParams, run: str, folder: Path, settings: Settings) -> Request:
    """The request of an earlier run, with what the client names instead. Raises Refused."""
    if Path(run).parent != folder / ".warpline" / "runs":
        raise Refused(f"{run} is no run of {folder}")
    try:
        before = runs.manifest(Path(run)).request
    except Problem as problem:
        raise Refused(str(problem)) from None
    if not before.module and not Path(before.target).is_file():
        raise Refused(f"there is no file {before.target} any more")
    known = before.python if os.access(before.python, os.X_OK) else ""
    return replace(
        before,
        argv=before.argv if params.args is None else tuple(params.args),
        cwd=params.cwd or _cwd(before) or str(folder),
        python=params.python or known or settings.python,
        launcher=_launcher(params, (), before),
        environment={**before.environment, **(params.env or {})},
    )


def _cwd(before: Request | None) -> str:
    """Where it ran the last time: its arguments may have paths from there."""
    return before.cwd if before is not None and Path(before.cwd).is_dir() else ""


def _launcher(params: ProfileParams, own: Sequence[str], before: Request | None) -> tuple[str, ...]:
    """The client's, else that of the configuration or the settings, else that of the last time. Raises
    Refused."""
    if isinstance(params.launcher, str):
        try:
            return tuple(shlex.split(params.launcher))
        except ValueError as error:
            raise Refused(f"launcher: {error}", "parameters") from None
    if params.launcher is not None:
        return tuple(params.launcher)
    if own or before is None:
        return tuple(own)
    return launching.with_any_python(before.launcher, before.python)


def _complete(made: Request) -> Request:
    """With the interpreter, and its own launcher. Raises Refused."""
    try:
        found = interpreter.find(made)
        return replace(made, python=found, launcher=launching.launcher_with(made.launcher, found))
    except Problem as problem:
        raise Refused(f"{problem}", "no-python") from None


def last_request(folder: Path, target: str) -> Request | None:
    """How a script (or module) was profiled the last time in this folder."""
    place = folder / ".warpline" / "runs"
    try:
        names = sorted((entry.name for entry in os.scandir(place) if entry.name[:1] != "."), reverse=True)
    except OSError:
        return None
    for name in names:
        try:
            manifest = runs.manifest(place / name)
        except Problem:
            continue
        if target in (manifest.request.target, manifest.script):
            return manifest.request
    return None


def last_of(folders: Folders, path: str) -> Request | None:
    """The same for a file, of the runs that are loaded."""
    for folder in folders:
        for session in folder.sessions:
            if session.results.report.script == path:
                return session.results.request
    return None
