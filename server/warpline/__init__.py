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


def load(run: str) -> Tables:
    """Read a run folder into pandas tables; see :class:`warpline.tables.Tables`.

    ``run`` is the path of a run folder, as ``warpline profile`` prints it. Raises
    :class:`warpline.model.problem.Problem` when it is not one.
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

    ``with warpline.profile() as run:`` stands around a training loop, ``@warpline.profile`` above a
    function that has one; :class:`warpline.inprocess.run.Run` says what ``run`` can do. The block runs to
    its end, with its exceptions; once enough steps were measured it runs as it would alone. Then the table
    is printed (``show``; ``top`` lines of it), and the run lies in ``.warpline/runs`` (``run_dir``) like any
    other.

    ``steps`` are captured, after ``warmup`` steps (else once their times have settled) and a window in which
    they are only timed. So a block needs some 25 steps, or half a second of them if that is more. ``few``
    says how many it makes where those are less; 6 is the least. ``every``: after that some steps of every so
    many are timed, as with ``warpline profile --every``.
    """
    from warpline.inprocess.profiling import Profiling

    profiling = Profiling(steps, warmup, few, every, show, top, run_dir)
    return profiling if function is None else profiling(function)


def load_ipython_extension(shell: Any) -> None:
    """``%load_ext warpline`` in a notebook: the magic ``%%warpline``."""
    from warpline.notebook.magic import WarplineMagics

    shell.register_magics(WarplineMagics)
