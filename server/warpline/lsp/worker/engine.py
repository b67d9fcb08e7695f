"""A worker process as the server sees it: ask, follow the progress, cancel, end."""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import json
import os
import signal
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcRequestCancelled

from warpline.lsp.worker.family import descendants
from warpline.lsp.worker.start import command

#: After a request to end, a worker gets this long before it is killed with everything it started.
GRACE_S = 10.0
_LINE = 256 * 2**20
_CHUNK = 65536  # of output, read at once

Progress = Callable[[str, int, "int | None", str], None]


class Failed(Exception):
    """A job's problem: ``str()`` is the one clear line, ``status`` as in the contract."""

    def __init__(self, message: str, status: int = 2) -> None:
        super().__init__(message)
        self.status = status
        self.remedies: list[dict[str, Any]] = []

    def answer(self) -> JsonRpcException:
        """The error that answers a request."""
        if self.status == 130:
            return JsonRpcRequestCancelled(message=str(self))
        return could_not(str(self), "no-steps" if self.status == 1 else "failed", self.remedies)


def could_not(message: str, reason: str, remedies: Sequence[dict[str, Any]] = ()) -> JsonRpcException:
    """RequestFailed with its reason, as PROTOCOL.md has it."""
    data = {"reason": reason, "remedies": [*remedies], **({"remedy": remedies[0]} if remedies else {})}
    return JsonRpcException(message, types.LSPErrorCodes.RequestFailed.value, data)


class Engine:
    """One worker, started by the first job. ``on_output``: a line that it, or the script it runs, wrote;
    ``idle_s``: without a job for so long it is ended, and its memory is free again."""

    def __init__(self, on_output: Callable[[str], None], idle_s: float | None = None) -> None:
        self._on_output = on_output
        self._idle_s = idle_s
        self._idle: asyncio.TimerHandle | None = None
        self._ending: asyncio.Task[None] | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._waiting: dict[int, tuple[asyncio.Future[Any], Progress | None]] = {}
        self._count = 0
        self._readers: list[asyncio.Task[None]] = []
        self.tail: deque[str] = deque(maxlen=40)  # the last lines of output

    @property
    def alive(self) -> bool:
        """Whether the worker process runs."""
        return self._process is not None and self._process.returncode is None

    async def ask(self, do: str, on_progress: Progress | None = None, **fields: Any) -> Any:
        """Have a job done. Raises Failed; cancelling the caller cancels the job, and waits for its end."""
        if self._idle is not None:
            self._idle.cancel()
        if not self.alive:
            await self._start()
        self._count += 1
        number = self._count
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[number] = (future, on_progress)
        self._write({"id": number, "do": do, **fields})
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            self._write({"cancel": number})
            with contextlib.suppress(Failed, asyncio.TimeoutError):
                await asyncio.wait_for(future, GRACE_S)
            raise
        finally:
            self._waiting.pop(number, None)
            if self._idle_s is not None and not self._waiting:
                self._idle = asyncio.get_running_loop().call_later(self._idle_s, self._rest)

    def _rest(self) -> None:
        if not self._waiting:
            self._ending = asyncio.ensure_future(self.end())

    async def end(self) -> None:
        """End the worker and everything it started."""
        process, readers = self._process, self._readers
        if process is None:
            return
        self._process = None  # a job that comes now gets a worker of its own
        if process.returncode is None:
            family = descendants(process.pid)
            if process.stdin is not None:
                process.stdin.close()
            try:
                await asyncio.wait_for(process.wait(), GRACE_S)
            except asyncio.TimeoutError:
                family |= descendants(process.pid)
                kill([process.pid, *family])
                await process.wait()
        for reader in readers:
            reader.cancel()

    def kill(self) -> None:
        """The same at once, for when there is no loop left to wait in."""
        if self._process is not None and self._process.returncode is None:
            kill([*descendants(self._process.pid), self._process.pid])

    async def _start(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            *command(),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=_LINE,
            start_new_session=True,
        )
        process = self._process
        self._readers = [
            asyncio.create_task(self._answers(process)),
            asyncio.create_task(self._output(process)),
        ]

    def _write(self, message: dict[str, Any]) -> None:
        if self.alive and self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(OSError, RuntimeError):
                self._process.stdin.write(json.dumps(message).encode() + b"\n")

    async def _answers(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        ended = "the server is ending"
        try:
            async for line in process.stdout:
                self._answer(line)
            ended = f"the profiling process was ended ({_how(await process.wait())})"
        finally:
            for future, _ in self._waiting.values():
                if not future.done():
                    future.set_exception(Failed(ended, 1))

    def _answer(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except ValueError:
            return
        future, on_progress = self._waiting.get(message.get("id"), (None, None))
        if future is None or future.done():
            return
        if "progress" in message:
            if on_progress is not None:
                at = message["progress"]
                on_progress(at["stage"], at["done"], at["total"], at["message"])
        elif "problem" in message:
            future.set_exception(Failed(**message["problem"]))
        else:
            future.set_result(message.get("result"))

    async def _output(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        rest = ""
        try:
            while chunk := await process.stderr.read(_CHUNK):
                # A line ends where it ends, not where a read does: Python writes the marks below a line of a
                # traceback one by one.
                lines = (rest + decoder.decode(chunk)).splitlines(keepends=True)
                open_ended = lines and lines[-1][-1] not in "\r\n" and len(lines[-1]) < _CHUNK
                rest = lines.pop() if open_ended else ""
                for line in lines:
                    self._said(line.rstrip("\r\n"))
        finally:
            if rest:
                self._said(rest)

    def _said(self, line: str) -> None:
        self.tail.append(line)
        self._on_output(line)


def kill(processes: list[int]) -> None:
    """End processes by their ids; those that are gone are skipped."""
    for process in processes:
        with contextlib.suppress(OSError):
            os.kill(process, signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM)


def _how(status: int) -> str:
    if status < 0:
        with contextlib.suppress(ValueError):
            return f"by {signal.Signals(-status).name}"
    return f"exit status {status}"
