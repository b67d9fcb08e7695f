"""Warpline: find the lines that slow down a PyTorch training step.

``warpline.load(run)`` gives a run's report as pandas tables; everything else is behind the
command line (``python -m warpline``) and the language server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from warpline.tables import Tables

__version__ = "0.1.0"
__all__ = ["__version__", "load"]


def load(run: str) -> Tables:
    """Read a run folder into pandas tables; see :class:`warpline.tables.Tables`.

    ``run`` is the path of a run folder, as ``warpline profile`` prints it. Raises
    :class:`warpline.model.problem.Problem` when it is not one.
    """
    from warpline.tables import load as load_tables  # pandas is slow to import: only when asked for

    return load_tables(run)


def load_ipython_extension(shell: Any) -> None:
    """``%load_ext warpline`` in a notebook: the magic ``%%warpline``."""
    from warpline.notebook.magic import WarplineMagics

    shell.register_magics(WarplineMagics)
