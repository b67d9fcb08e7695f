"""The command line: ``warpline COMMAND …``, the same as ``python -m warpline COMMAND …``."""

from __future__ import annotations

import os
import sys

# ``-m`` has put the working folder there: the user's queue.py must not be taken for Python's.
if __name__ == "__main__" and sys.path[:1] == [os.getcwd()] != __file__.rsplit(os.sep, 2)[:1]:  # noqa: PTH109
    del sys.path[0]  # (pathlib's own imports would have come from there)

import argparse
import difflib
import errno
import gc
import importlib
import itertools
import time
from collections.abc import Sequence
from typing import NoReturn

from warpline import __version__
from warpline.commands import COMMANDS
from warpline.model.problem import Problem

#: New objects after which garbage is looked for. Imports make 80,000 that stay: to look after every 700 or
#: 2,000, as Python does, takes a tenth of a command's start.
_GARBAGE = 200_000

_USAGE = "usage: warpline COMMAND [options] (details: warpline COMMAND --help)"


class _Parser(argparse.ArgumentParser):
    """Complains in one line, where argparse would print its usage as well."""

    def error(self, message: str) -> NoReturn:
        raise Problem(f"{message} (see {self.prog} --help)")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status: 0, 1, 2 or 130 (contract.md)."""
    gc.set_threshold(_GARBAGE, *gc.get_threshold()[1:])
    try:
        return _main(list(sys.argv[1:] if arguments is None else arguments))
    finally:
        if arguments is None:
            gc.freeze()  # the process ends: to look for garbage once more would take 0.08 s


def _main(arguments: list[str]) -> int:
    name, *rest = arguments or ["--help"]
    if name in ("-h", "--help", "help"):
        print(_overview())
        return 0
    if name in ("-V", "--version"):
        print(f"warpline {__version__}")
        return 0
    if name not in COMMANDS:
        return _complain(_unknown(name), 2)
    try:
        status = _run(name, rest)
        print(end="", flush=True)  # here, where an error can still be reported
        return status
    except Problem as problem:
        return _complain(str(problem), problem.status)
    except KeyboardInterrupt:
        return _complain("interrupted", 130)
    except BrokenPipeError:
        # The reader went away (`warpline show | head`); say nothing when Python flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            # Python would try to write the rest once more when it exits.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return _complain(f"no space left to write {error.filename or 'the output'}", 2)
        # A fault of ours is one line too; the traceback on request.
        if os.environ.get("WARPLINE_TRACEBACK"):
            raise
        fault = f"{type(error).__name__}: {error}".splitlines()[0]
        return _complain(f"internal error: {fault} (WARPLINE_TRACEBACK=1 prints the traceback)", 2)


def _run(name: str, rest: Sequence[str]) -> int:
    options = argparse.Namespace(began=time.monotonic())  # of a budget; importing the command is part of it
    module = importlib.import_module(f"warpline.commands.{COMMANDS[name][0]}")
    # No abbreviations: what follows SCRIPT is the script's, and must not be taken for ours.
    parser = _Parser(
        prog=f"warpline {name}",
        description=module.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    module.configure(parser)
    try:
        status: int = module.run(parser.parse_args(rest, options))
    except Problem as problem:
        hint = _unquoted(options, problem) or _misplaced(parser, options, rest, problem)
        raise Problem(f"{problem}{hint}", problem.status) from problem
    sys.stdout.flush()
    return status


def _unquoted(options: argparse.Namespace, problem: Problem) -> str:
    """A hint for ``--launcher torchrun --nproc-per-node 2``, whose last two words are not the launcher's."""
    launcher = getattr(options, "launcher", None) or ""
    if not str(problem).startswith("unrecognized arguments") or not launcher or " " in launcher:
        return ""
    return f" (a launcher and its options are one argument: --launcher '{launcher} …')"


def _misplaced(parser: _Parser, options: argparse.Namespace, words: Sequence[str], problem: Problem) -> str:
    """A hint for wrong input: one of Warpline's options was written behind the script, which got it instead.
    Empty where that is not the cause."""
    if problem.status != 2 and "exited with status 2" not in str(problem):
        return ""
    target = getattr(options, "target", None) or [".py"]
    if isinstance(target, list) and not target[0].endswith(".py"):
        return ""
    behind = itertools.dropwhile(lambda word: not word.endswith(".py"), words)
    ours = (word for word in behind if word.partition("=")[0] in parser._option_string_actions)
    return "".join(
        f" ({word} was passed to the script: put Warpline's own options before the script)"
        for word in [*ours][:1]
    )


def _overview() -> str:
    width = max(map(len, COMMANDS))
    rows = (f"  {name:{width}}  {summary}" for name, (_, summary) in COMMANDS.items())
    return "\n".join(
        (
            _USAGE,
            "",
            ("Find the lines that slow down a PyTorch training step, fix them, and measure the gain."),
            "",
            *rows,
        )
    )


def _unknown(name: str) -> str:
    close = difflib.get_close_matches(name, COMMANDS, n=1)
    hint = f"did you mean '{close[0]}'?" if close else "'warpline --help' lists the commands."
    if name.endswith(".py"):
        hint = f"did you mean 'warpline profile {name}'?"
    return f"there is no command '{name}'; {hint}"


def _complain(message: str, status: int) -> int:
    print(f"warpline: {message}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
