"""List the rules: what each finds, by area."""

from __future__ import annotations

import argparse


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--markdown", action="store_true", help="as the table of docs/rules.md")


def run(options: argparse.Namespace) -> int:
    from warpline.diagnosis.catalogue import as_markdown, as_text

    print(as_markdown() if options.markdown else as_text(), end="")
    return 0
