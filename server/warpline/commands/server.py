"""The language server, on standard input and output or on a TCP port of this machine."""

from __future__ import annotations

import argparse


def configure(parser: argparse.ArgumentParser) -> None:
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--stdio", action="store_true", help="use standard input and output (default)")
    where.add_argument("--tcp", type=int, metavar="PORT", help="listen on 127.0.0.1:PORT")


def run(options: argparse.Namespace) -> int:
    from warpline.lsp.serve import serve

    return serve(port=options.tcp)
