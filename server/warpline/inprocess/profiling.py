"""The context manager and the decorator."""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, TracebackType
from typing import Any, TypeVar

from warpline import runs
from warpline.capture.inprocess import InProcess, script_of
from warpline.inprocess.cells import cells
from warpline.inprocess.run import Run
from warpline.model.problem import Problem
from warpline.wire.run import Request

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass
class Profiling:
    """``with`` makes a run of each block; as a decorator, of the first call with enough steps.

    Whatever goes wrong with the measurement is one line on standard error, and never the block's concern.
    """

    steps: int
    warmup: int | None
    few: int | None
    every: int
    show: bool
    top: int | None
    run_dir: str | os.PathLike[str] | None
    _entered: list[tuple[Run, InProcess | None]] = field(default_factory=list)

    def __enter__(self) -> Run:
        return self._enter(sys._getframe(1).f_code)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        run, measured = self._entered.pop()
        run._measured = None
        if measured is not None:
            with _told(run):
                measured.stop(failed=error is not None)
                from warpline import pipeline

                run.path = pipeline.finished(measured.destination, measured.request)
                if self.show:
                    run.show(self.top)

    def __call__(self, function: Function) -> Function:
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError("warpline.profile: a generator runs in pieces; use `with` around its loop")
        code = inspect.unwrap(function).__code__

        @contextlib.contextmanager
        def once() -> Iterator[None]:
            run: Run | None = wrapper.run
            if run is not None and (run.path is not None or run._measured is not None):
                yield  # it was measured, or is: this call is one within the other, or in another thread
                return
            wrapper.run = self._enter(code)
            with contextlib.ExitStack() as stack:
                stack.push(self.__exit__)
                yield

        def call(*arguments: Any, **named: Any) -> Any:
            with once():
                return function(*arguments, **named)

        async def call_async(*arguments: Any, **named: Any) -> Any:
            with once():
                return await function(*arguments, **named)

        wrapper: Any = functools.wraps(function)(
            call_async if inspect.iscoroutinefunction(function) else call
        )
        wrapper.run = None
        made: Function = wrapper
        return made

    def _enter(self, code: CodeType) -> Run:
        run = Run()
        with _told(run):
            measured = self._prepared(code)
            measured.start()
            run._measured = measured
        self._entered.append((run, run._measured))
        return run

    def _prepared(self, code: CodeType) -> InProcess:
        cwd = Path.cwd()
        folder = Path(self.run_dir).absolute() if self.run_dir is not None else runs.runs_folder(cwd)
        notebook = cells(folder)
        script, module = script_of(notebook.files.get(code.co_filename) or code.co_filename)
        request = Request(
            target=module or script,
            module=bool(module),
            argv=tuple(sys.argv[1:]) if script != code.co_filename else (),
            cwd=str(cwd),
            python=sys.executable,
            steps=max(1, self.steps),
            warmup=self.warmup,
            whole_run=True,
            every=self.every,
        )
        return InProcess(request, script, runs.new_run(folder), self.few, notebook)


@contextlib.contextmanager
def _told(run: Run) -> Iterator[None]:
    """What goes wrong is one line on standard error, a fault of ours too."""
    try:
        yield
    except Problem as problem:
        run.problem = str(problem)
    except Exception as error:
        if os.environ.get("WARPLINE_TRACEBACK"):
            raise
        fault = f"{type(error).__name__}: {error}".splitlines()[0]
        run.problem = f"internal error: {fault} (WARPLINE_TRACEBACK=1 shows where)"
    if run.problem:
        print(f"warpline: {run.problem}", file=sys.stderr)
