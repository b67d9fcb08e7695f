"""Look inside one kernel with Nsight Compute: FILE:LINE in a Triton kernel, or the line that launches one.

Runs the script of the newest run of FILE once more under ncu, up to one launch of that kernel. What it
finds is kept beside the run, where findings and the editor show it.
"""

from __future__ import annotations

import argparse
import ast
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from warpline.commands import output, run_argument
from warpline.model.problem import Problem

if TYPE_CHECKING:
    from warpline.model.kernel import KernelInside
    from warpline.model.profile import Profile


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--json", metavar="FILE", help="write JSON to FILE ('-': standard output, and no table)"
    )
    parser.add_argument("--run", metavar="RUN", help="the run whose script is run again (the newest of FILE)")
    parser.add_argument(
        "--against", metavar="BEFORE", help="another version of it: FILE:LINE, or what --json wrote"
    )
    parser.add_argument(
        "place",
        metavar="FILE:LINE",
        help="a line of the kernel, or the one that launches it; or what --json wrote",
    )


def run(options: argparse.Namespace) -> int:
    output.check(options)
    words = [options.place] if options.against is None else [options.against, options.place]
    # Both are understood before the script runs for the first.
    asked = [_read(word) if _is_json(word) else _place(word) for word in words]
    found = [look(*one, options.run) if isinstance(one, tuple) else one for one in asked]
    if options.json:
        # With --against both, the one compared with first.
        output.json(found[0] if options.against is None else found, options.json)
    if options.json != "-":
        _print(found)
    return 0


def look(file: Path, line: int, run: str | None = None) -> KernelInside:
    """Run the script under ncu and keep what it says of the kernel at ``file:line``. Raises Problem."""
    from warpline import pipeline
    from warpline.capture import nsight, nsight_module, probe
    from warpline.diagnosis.files import text_of
    from warpline.trace.nsight import read

    run_folder = run_argument.find(run) if run is not None else _newest_of(file)
    profile = pipeline.profile_of(run_folder)
    name = kernel_at(profile, file, line)
    ncu = probe.nsight_compute()
    if ncu is None:
        raise Problem("Nsight Compute (ncu) is not installed; 'warpline doctor' says how to get it")
    module = nsight_module.find(ncu)
    with tempfile.TemporaryDirectory() as folder:
        report = nsight.collect(profile.manifest.request, name, Path(folder, "kernel.ncu-rep"), ncu)
        inside = read(report, module).with_texts(text_of)
    pipeline.keep_kernel(run_folder, inside)
    return inside


def kernel_at(profile: Profile, file: Path, line: int) -> str:
    """The device's name of the kernel meant by ``file:line``. Raises Problem when there is none."""
    written = _triton_kernel(file, line)
    if written is not None:
        return written
    here = [cost for cost in profile.lines if Path(cost.file) == file and cost.line == line]
    kernels = sorted(
        (k for cost in here for k in cost.kernels if k.kind == "kernel"), key=lambda k: -k.device_ms
    )
    if not kernels:
        raise Problem(f"{file.name}:{line} launches no kernel in this run, and is in no Triton kernel")
    return kernels[0].name.split("<")[0].split("(")[0].removeprefix("void ").split("::")[-1]


def _newest_of(file: Path) -> Path:
    """The newest run in which ``file`` took part; else the newest, which may launch its kernels."""
    from warpline import runs

    folder = Path.cwd() / ".warpline" / "runs"
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


def _triton_kernel(file: Path, line: int) -> str | None:
    """The name of the function with a ``…jit`` decorator of Triton's around ``line``."""
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.lineno <= line <= (node.end_lineno or 0):
            decorators = (ast.unparse(decorator).split("(")[0] for decorator in node.decorator_list)
            if any(name in ("triton.jit", "jit") for name in decorators):
                return node.name
    return None


def _print(found: list[KernelInside]) -> None:
    from warpline.terminal import kernel
    from warpline.view.kernel import kernel_table
    from warpline.view.kernel_compare import compare_kernels

    if len(found) == 1:
        kernel.show(kernel_table(found[0]))
    else:
        kernel.show_comparison(compare_kernels(*found))
