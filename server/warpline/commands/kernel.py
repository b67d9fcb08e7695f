"""Look inside one kernel with Nsight Compute: FILE:LINE in a Triton kernel, or the line that launches one.

Runs the script of the newest run once more under ncu, up to one launch of that kernel.
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
    parser.add_argument("--run", metavar="RUN", help="the run whose script is run again (the newest)")
    parser.add_argument(
        "place", metavar="FILE:LINE", help="a line of the kernel, or the one that launches it"
    )


def run(options: argparse.Namespace) -> int:
    file, line = _place(options.place)
    output.check(options)
    run_folder = run_argument.find(options.run)
    from warpline import pipeline
    from warpline.capture import nsight, nsight_module, probe
    from warpline.trace.nsight import read

    profile = pipeline.profile_of(run_folder)
    name = kernel_at(profile, file, line)
    ncu = probe.nsight_compute()
    if ncu is None:
        raise Problem("Nsight Compute (ncu) is not installed; 'warpline doctor' says how to get it")
    module = nsight_module.find(ncu)
    with tempfile.TemporaryDirectory() as folder:
        report = nsight.collect(profile.manifest.request, name, Path(folder, "kernel.ncu-rep"), ncu)
        inside = read(report, module)
    if options.json:
        output.json(inside, options.json)
    if options.json != "-":
        _print(inside)
    return 0


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


def _print(inside: KernelInside) -> None:
    from warpline.diagnosis.files import text_of
    from warpline.terminal.kernel import show
    from warpline.view.kernel import kernel_table

    show(kernel_table(inside, text_of))
