"""The main loop of the worker process: profiling, reports, fixes, rule pages.

Runs as a process of its own and speaks JSON lines on its standard input and output: ``{"id", "do",
…}`` in, ``{"id", "progress" | "result" | "problem"}`` out, ``{"cancel": id}`` in at any time. The end
of standard input means that the server is gone, however it went: the work, and the user's script
with it, is ended.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
from collections.abc import Callable
from typing import IO, Any

#: A job that does not heed its cancellation within this many seconds is left by force.
PATIENCE_S = 15.0


class Worker:
    def __init__(self, requests: IO[str], answers: IO[str]) -> None:
        self._requests, self._answers = requests, answers
        self._writing = threading.Lock()
        self._todo: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._cancelled: dict[int, threading.Event] = {}
        self._kept: dict[str, Any] = {}  # what later jobs need again: profiles by run

    def serve(self) -> None:
        """Do one job after another until standard input ends."""
        threading.Thread(target=self._listen, daemon=True).start()
        while (job := self._todo.get()) is not None:
            self._do(job)

    def _listen(self) -> None:
        for line in self._requests:
            message = json.loads(line)
            if "cancel" in message:
                self._event(message["cancel"]).set()
            else:
                self._event(message["id"])
                self._todo.put(message)
        for event in tuple(self._cancelled.values()):
            event.set()
        self._todo.put(None)
        end = threading.Timer(PATIENCE_S, os._exit, (1,))
        end.daemon = True
        end.start()

    def _event(self, number: int) -> threading.Event:
        return self._cancelled.setdefault(number, threading.Event())

    def _do(self, job: dict[str, Any]) -> None:
        from warpline.lsp.worker import jobs
        from warpline.model.problem import Problem

        number, cancelled = job["id"], self._event(job["id"])
        perform: Callable[..., Any] = jobs.JOBS[job["do"]]

        def progress(stage: str, done: int, total: int | None, message: str) -> None:
            self._send(
                {"id": number, "progress": {"stage": stage, "done": done, "total": total, "message": message}}
            )

        try:
            if cancelled.is_set():
                raise Problem("cancelled", 130)
            answer = {"id": number, "result": perform(job, progress, cancelled, self._kept)}
        except Problem as problem:
            answer = {"id": number, "problem": {"message": str(problem), "status": problem.status}}
        except KeyboardInterrupt:
            answer = {"id": number, "problem": {"message": "interrupted", "status": 130}}
        except Exception as error:  # noqa: BLE001 - one job's fault must not cost the next one
            fault = f"internal error: {type(error).__name__}: {error}".splitlines()[0]
            answer = {"id": number, "problem": {"message": fault, "status": 2}}
            import traceback

            traceback.print_exc()
        self._cancelled.pop(number, None)
        self._send(answer)

    def _send(self, message: dict[str, Any]) -> None:
        with self._writing:
            try:
                self._answers.write(json.dumps(message) + "\n")
                self._answers.flush()
            except (BrokenPipeError, ValueError):
                pass  # The server is gone; the end of standard input says so too.


def main() -> None:
    """Take standard input and output for the channel: the script must neither read nor write there."""
    requests = os.fdopen(os.dup(0), encoding="utf-8")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - lives as long as the process
    Worker(requests, answers).serve()
