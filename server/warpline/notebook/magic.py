"""``%%warpline``: the cell is profiled in a process of its own, which first runs what the kernel has run.

Not inside the kernel: the measurement replaces methods of torch, sets trace functions, stops the code after
its window and runs short code twice. A kernel holds the user's only copy of the session, and must come out
as it went in. The cost is described in docs/jupyter-ssh-containers.md.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path
from typing import Any, NoReturn

from IPython.core.magic import Magics, cell_magic, magics_class
from IPython.display import display

from warpline.model.problem import Problem
from warpline.notebook.code import Cell, Script, file_name, script
from warpline.wire.run import Request


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise Problem(f"{message} ({' '.join(self.format_usage().split())})")


def _options(line: str) -> argparse.Namespace:
    parser = _Parser(prog="%%warpline", add_help=False, allow_abbrev=False)
    parser.add_argument("--steps", type=int, default=5, metavar="N")
    parser.add_argument("--warmup", type=int, metavar="N")
    parser.add_argument("--timeout", type=float, metavar="SECONDS")
    parser.add_argument("--top", type=int, metavar="N")
    parser.add_argument("--skip", type=_numbers, default=frozenset(), metavar="2,5")
    return parser.parse_args(shlex.split(line))


def _numbers(words: str) -> frozenset[int]:
    return frozenset(int(word.strip("[] ")) for word in words.split(","))


@magics_class
class WarplineMagics(Magics):
    """Knows which cells failed from the moment it is loaded."""

    def __init__(self, shell: Any) -> None:
        super().__init__(shell)
        self.kernel = shell
        self.failed: set[int] = set()
        shell.events.register("post_run_cell", self._ran)

    def _ran(self, result: Any) -> None:
        if not result.success and result.execution_count:
            self.failed.add(result.execution_count)

    @cell_magic
    def warpline(self, line: str, cell: str) -> None:
        """Profile this cell: its steps, or the whole of it where it makes none.

        Options: --steps N, --warmup N, --timeout SECONDS, --top LINES, --skip 2,5 (cells not to run)
        """
        try:
            self._profile(line, cell)
        except Problem as problem:
            print(f"warpline: {problem}", file=sys.stderr)

    def _profile(self, line: str, cell: str) -> None:
        from warpline import pipeline, runs
        from warpline.notebook.shown import shown

        options = _options(line)
        made = self._script(cell, options.skip)
        cwd = Path.cwd()
        place = runs.runs_folder(cwd).parent / "notebooks" / f"{file_name(self.kernel.user_ns)}.py"
        runs.stay_inside(place.parent, cwd)
        place.parent.mkdir(exist_ok=True)
        runs.write(place, made.text.encode())
        request = Request(
            target=str(place),
            cwd=str(cwd),
            python=sys.executable,
            environment={"MPLBACKEND": "agg"},  # the kernel's own draws into the notebook
            steps=max(1, options.steps),
            warmup=options.warmup,
            timeout_s=options.timeout,
            first_line=made.first_line,
        )
        run, report = pipeline.profile(request)
        show: Any = display
        show(shown(run, report, pipeline.profile_of(run), made.placed(place.name), options.top))

    def _script(self, cell: str, skipped: frozenset[int]) -> Script:
        history = self.kernel.history_manager.input_hist_raw
        now = len(history) - 1  # whatever execution_count says: IPython 9 counts it up before the cell runs
        left_out = self.failed | skipped | {0, now}
        before = [Cell(number, source) for number, source in enumerate(history) if number not in left_out]
        return script(before, Cell(now, cell), self.kernel.transform_cell)
