"""Serve coding agents: the Model Context Protocol over standard input and output.

An agent is told to run `warpline mcp` in the project's folder. Its tools profile a script, show findings,
fixes as diffs and the plan, and measure a fix. They never write to the sources.
"""

from __future__ import annotations

import argparse
import sys

from warpline.model.problem import Problem


def configure(parser: argparse.ArgumentParser) -> None:
    pass


def run(options: argparse.Namespace) -> int:
    try:
        from warpline.agents.server import server
    except ModuleNotFoundError as error:
        raise Problem(
            f"warpline mcp needs the package {error.name}: pip install '.[mcp]' in a clone "
            "of Warpline, into Warpline's environment"
        ) from None
    if sys.stdin.isatty():
        print(
            "warpline mcp is for coding agents and waits for one on standard input; Ctrl-C ends it "
            "(docs/agents.md)",
            file=sys.stderr,
        )
    server.run("stdio")
    return 0
