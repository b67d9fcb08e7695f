"""Warpline: find the lines that slow down a PyTorch training step.

``with warpline.profile():`` measures a block of this process. ``warpline.load(run)`` gives a run's report as
pandas tables. Everything else is behind the command line (``python -m warpline``) and the language server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

if TYPE_CHECKING:
    import os

    from warpline.inprocess.profiling import Function, Profiling
    from warpline.tables import Tables

__version__ = "0.1.0"
__all__ = ["__version__", "load", "profile"]


def load(run: str | os.PathLike[str] | None = None) -> Tables:
    """Read a run folder into pandas tables; see :class:`warpline.tables.Tables`.

    ``run`` is the path of a run folder, as ``warpline profile`` prints it; None: the newest run of the
    project around the working folder. Raises :class:`warpline.model.problem.Problem` when there is none.
    """
    from warpline.tables import load as load_tables  # pandas is slow to import: only when asked for

    return load_tables(run)


@overload
def profile(function: Function, /) -> Function: ...
@overload
def profile(
    *,
    steps: int = 5,
    warmup: int | None = None,
    few: int | None = None,
    every: int = 0,
    show: bool = True,
    top: int | None = None,
    run_dir: str | os.PathLike[str] | None = None,
) -> Profiling: ...
def profile(
    function: Function | None = None,
    /,
    *,
    steps: int = 5,
    warmup: int | None = None,
    few: int | None = None,
    every: int = 0,
    show: bool = True,
    top: int | None = None,
    run_dir: str | os.PathLike[str] | None = None,
) -> Profiling | Function:
    """Measure the steps of a block, or of a function's call, in this process.

    Use ``with warpline.profile() as run:`` around a training loop, or ``@warpline.profile`` above a function
    that has one; :class:`warpline.inprocess.run.Run` documents ``run``. The block runs to its end, with its
    exceptions. Once enough steps were measured, it runs without Warpline. Then the table is printed
    (``show``; ``top``: number of lines), and the run is in ``.warpline/runs`` (``run_dir``) like any other.

    ``steps`` steps are captured, after ``warmup`` steps (default: until their times settle) and a window in
    which steps are only timed. So a block needs about 25 steps, or half a second of steps if that is more.
    For a block with fewer steps, pass their number as ``few`` (at least 6). ``every``: after the capture, a
    few steps of every N are timed, as with ``warpline profile --every``.
    """
    from warpline.inprocess.profiling import Profiling

    profiling = Profiling(steps, warmup, few, every, show, top, run_dir)
    return profiling if function is None else profiling(function)


def load_ipython_extension(shell: Any) -> None:
    """``%load_ext warpline`` in a notebook: the magic ``%%warpline``."""
    from warpline.notebook.magic import WarplineMagics

    shell.register_magics(WarplineMagics)
