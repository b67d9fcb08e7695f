"""Look inside one kernel with Nsight Compute: FILE:LINE in a Triton kernel, or the line that launches one.

Runs the script of the newest run of FILE again under ncu, up to one launch of that kernel. The counters are
stored with the run: its findings and the editor show them.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from warpline.commands import output, run_argument
from warpline.model.problem import Problem

if TYPE_CHECKING:
    from warpline.model.kernel import KernelInside


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--json", metavar="FILE", help="write JSON to FILE ('-': standard output, and no table)"
    )
    parser.add_argument(
        "--run", metavar="RUN", help=("the run whose script to run again (the newest of FILE)")
    )
    parser.add_argument(
        "--against",
        metavar="BEFORE",
        help=("another version of the kernel to compare with: FILE:LINE, or a file of --json"),
    )
    parser.add_argument(
        "place",
        metavar="FILE:LINE",
        help="a line of the kernel, or the line that launches it; or a file of --json",
    )


def run(options: argparse.Namespace) -> int:
    output.check(options)
    words = [options.place] if options.against is None else [options.against, options.place]
    # Both are understood before the script runs for the first.
    asked = [_read(word) if _is_json(word) else _place(word) for word in words]
    found = [_look(*one, options.run) if isinstance(one, tuple) else one for one in asked]
    if options.json:
        # With --against both, the one compared with first.
        output.json(found[0] if options.against is None else found, options.json)
    if options.json != "-":
        _print(found)
    return 0


def _look(file: Path, line: int, run: str | None) -> KernelInside:
    from warpline import pipeline
    from warpline.syntax.files import read

    run_folder = run_argument.find(run) if run is not None else _newest_of(file)
    return pipeline.look_inside(run_folder, file, line, read(file).text)


def _newest_of(file: Path) -> Path:
    """The newest run in which ``file`` took part; else the newest, which may launch its kernels."""
    from warpline import runs

    folder = runs.nearest(Path.cwd())
    for run_folder in sorted(folder.glob("*"), reverse=True):
        if runs.is_run(run_folder) and str(file) in runs.sources(run_folder):
            return run_folder
    return run_argument.find(None)


def _is_json(word: str) -> bool:
    return word.endswith(".json") and Path(word).is_file()


def _read(word: str) -> KernelInside:
    """What ``--json`` or an earlier look left behind. Raises Problem."""
    from warpline import runs
    from warpline.model.kernel import KERNEL_FORMAT, KernelInside

    path = Path(word)
    found = runs.read(path.parent, path.name, KernelInside)
    if found.format != KERNEL_FORMAT:
        raise Problem(f"{word} has format {found.format}; this Warpline reads {KERNEL_FORMAT}")
    return found


def _place(word: str) -> tuple[Path, int]:
    name, _, number = word.rpartition(":")
    if not name or not number.isdecimal():
        raise Problem(f"{word!r} is not FILE:LINE")
    file = Path(name).absolute()
    if not file.is_file():
        raise Problem(f"there is no file {name}")
    return file, int(number)


def _print(kernels: list[KernelInside]) -> None:
    from warpline.terminal import kernel
    from warpline.view.kernel import kernel_table
    from warpline.view.kernel_compare import compare_kernels

    if len(kernels) == 1:
        kernel.show(kernel_table(kernels[0]))
    else:
        kernel.show_comparison(compare_kernels(*kernels))
