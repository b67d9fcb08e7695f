"""What runs: SCRIPT or MODULE with its arguments, for every command that takes them."""

from __future__ import annotations

import argparse
import ast
import os
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from warpline.model.problem import Problem
from warpline.wire.loops import Loop
from warpline.wire.run import Request

#: Programs that start a script's ranks.
LAUNCHERS = ("torchrun", "accelerate", "deepspeed", "mpirun", "mpiexec", "srun")


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds ``--python --launcher --include``, ``-m MODULE ARGS...`` and ``SCRIPT ARGS...``."""
    parser.add_argument("--python", metavar="PATH", help="interpreter to run the script with")
    parser.add_argument(
        "--launcher", metavar="COMMAND", help="e.g. 'torchrun --nproc-per-node 2', 'srun -n 2'"
    )
    parser.add_argument(
        "--include",
        action="append",
        default=[],
        metavar="DIR",
        help="files in DIR count as yours too (repeatable)",
    )
    parser.add_argument(
        "-m",
        dest="module",
        nargs=argparse.REMAINDER,
        metavar="MODULE",
        help="run a module, as python -m does",
    )
    # Everything after SCRIPT is the script's, whatever it looks like.
    parser.add_argument("target", nargs=argparse.REMAINDER, metavar="SCRIPT [ARGS...]", help="what to run")


def request(options: argparse.Namespace) -> Request:
    """What the command line asked for, completed from ``[tool.warpline]`` of the project.

    Raises Problem when nothing, or nothing that exists, was named.
    """
    from warpline import project

    cwd = Path.cwd()
    words = options.module if options.module is not None else options.target
    if words[:1] == ["--"]:
        words = words[1:]
    if not words:
        raise Problem("say what to run: a script (train.py), or a module (-m package.train)")
    if options.module is None and Path(words[0]).name in LAUNCHERS:
        raise Problem(_as_launcher(words))
    target = words[0] if options.module is not None else str(script(words[0]))
    for folder in options.include:
        if not Path(folder).is_dir():
            raise Problem(f"there is no folder {folder} to include")
    settings = project.settings(cwd if options.module is not None else Path(target).parent)
    try:
        launcher = tuple(shlex.split(options.launcher or settings.launcher))
    except ValueError as error:
        raise Problem(f"--launcher {options.launcher!r} cannot be read: {error}") from None
    return Request(
        target=target,
        typed="" if options.module is not None else words[0],
        module=options.module is not None,
        argv=tuple(words[1:]),
        cwd=str(cwd),
        python=absolute(options.python) if options.python else settings.python,
        launcher=launcher,
        steps=settings.steps,
        warmup=settings.warmup,
        timeout_s=settings.timeout,
        include=(*settings.include, *(os.path.abspath(folder) for folder in options.include)),
    )


def again(options: argparse.Namespace, before: Request) -> Request:
    """How the script of a run is run once more: as it was then, except for what the command line says."""
    asked = request(options)
    if not before.target:  # a trace made elsewhere
        return asked
    return replace(
        asked,
        target=before.target,
        typed=before.typed,
        module=before.module,
        argv=asked.argv or before.argv,
        cwd=before.cwd,
        environment=before.environment,
        python=asked.python if options.python else before.python,
        launcher=asked.launcher or before.launcher,
        first_line=before.first_line,
        loop=before.loop,
        loop_found=before.loop_found,
    )


def with_window(request: Request, options: argparse.Namespace) -> Request:
    """The request with what ``profile``'s own options say about the window of steps."""
    return replace(
        request,
        steps=options.steps or request.steps,
        warmup=request.warmup if options.warmup is None else options.warmup,
        timeout_s=options.timeout or request.timeout_s,
        whole_run=options.whole_run or bool(getattr(options, "every", None)),
        every=getattr(options, "every", None) or 0,
        nvtx=options.nvtx,
        peaks=options.peaks,
        probe_s=request.probe_s if options.probe is None else options.probe,
        loop=loop(options.loop, request) if getattr(options, "loop", None) else request.loop,
    )


def loop(word: str, request: Request) -> Loop:
    """The loop at ``FILE:LINE``, or at a line of the script. Raises Problem."""
    file, _, line = word.rpartition(":")
    if not line.isdecimal() or (request.module and not file):
        raise Problem(f"--loop {word}: expected FILE:LINE, or a line of the script")
    path = os.path.realpath(file or request.target)
    if not Path(path).is_file():
        raise Problem(f"--loop {word}: there is no file {file}")
    try:
        headers = loop_lines(Path(path).read_bytes())
    except (OSError, SyntaxError, ValueError):
        raise Problem(f"--loop {word}: cannot read {path}") from None
    if int(line) not in headers:
        raise Problem(f"--loop {word}: no loop begins at line {line} of {path}")
    return Loop(path, int(line))


def loop_lines(source: bytes) -> set[int]:
    """Where its loops and comprehensions begin."""
    kinds = (ast.For, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
    return {node.lineno for node in ast.walk(ast.parse(source)) if isinstance(node, kinds)}


def script(word: str) -> Path:
    """The absolute path of a script that exists, links not resolved. Raises Problem."""
    path = Path(os.path.abspath(word))
    if path.is_dir() and not (path / "__main__.py").is_file():
        raise Problem(f"{word} is a folder without __main__.py, not a script")
    if not path.exists():
        raise Problem(f"there is no script {word}{_starter(word)}")
    if path.suffix == ".ipynb":
        raise Problem(
            f"{word} is a notebook: write %load_ext warpline in it, and %%warpline at the top of a "
            f"cell; or convert it with `jupyter nbconvert --to script {word}` and profile the "
            "script"
        )
    if path.suffix in (".sh", ".bash"):
        raise Problem(f"{word} is a shell script: profile the Python script that it starts")
    return path


def _starter(word: str) -> str:
    """What to do about a program that starts scripts, where a script was expected."""
    name = Path(word).name
    if name.startswith("python"):
        return ": omit the interpreter, or choose it with --python"
    return ""


def _as_launcher(words: Sequence[str]) -> str:
    """What to type for ``torchrun -n 2 train.py --lr 1``: the launcher is an option here."""
    at = next((at for at, word in enumerate(words) if word.endswith(".py")), 0)
    if not at:
        return f"{words[0]} is a launcher: name it with --launcher '{words[0]} …', and then the script"
    launcher, script = shlex.quote(shlex.join(words[:at])), shlex.join(words[at:])
    return f"{words[0]} is a launcher: say --launcher {launcher} {script}"


def absolute(word: str) -> str:
    """An interpreter's path made absolute; a bare name is looked up on PATH when it starts."""
    return os.path.abspath(word) if os.sep in word else word
