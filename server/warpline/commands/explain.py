"""Print the page of RULE: what it finds, why that is slow, what to write instead, and how safe its fix is."""

from __future__ import annotations

import argparse
import difflib

from warpline.model.problem import Problem


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("rule", metavar="RULE", help="a rule's name, as in the findings")


def run(options: argparse.Namespace) -> int:
    from warpline.rules import names, page

    name = options.rule.strip().lower().replace("_", "-")
    if name not in names():
        close = difflib.get_close_matches(name, names(), n=1)
        hint = f"did you mean {close[0]}?" if close else "'warpline rules' lists them."
        raise Problem(f"there is no rule {options.rule}; {hint}")
    print(page(name).markdown(), end="")
    return 0
