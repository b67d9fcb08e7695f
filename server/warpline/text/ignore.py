"""``# warpline: ignore[rule]``: comments that silence rules, for diagnosis and for the editor alike.

A comment counts on the line itself, on a line of its own above it, and anywhere in the statement that begins
there. ``# warpline: ignore-file[rule]`` on a line of its own holds for the file. Without brackets it is for
all rules. Several are separated by commas.
"""

from __future__ import annotations

import io
import re
import tokenize

COMMENT = re.compile(r"#\s*warpline:\s*(ignore(?:-file)?)(?![\w-])\s*(?:\[([^\]]*)\])?")
ALL = "*"


class Suppressions:
    """What the comments of one file suppress. ``text``: all of it; lines count from 1."""

    def __init__(self, text: str) -> None:
        self._file: set[str] = set()
        self._lines: dict[int, set[str]] = {}
        self.named: set[str] = set()  # whether a rule is called so or not
        if "warpline:" not in text:
            return
        for first, last, comment, alone in _comments(text):
            for kind, names in COMMENT.findall(comment):
                rules = {name.strip() for name in names.split(",") if name.strip()}
                self.named |= rules
                rules = rules or {ALL}
                if kind == "ignore-file":
                    self._file |= rules
                    continue
                for line in range(first, last + 1 + alone):
                    self._lines.setdefault(line, set()).update(rules)

    def holds(self, rule: str, line: int) -> bool:
        """Whether ``rule`` is to be silent about ``line``."""
        return bool({rule, ALL} & (self._file | self._lines.get(line, set())))


def on_line(line: str) -> re.Match[str] | None:
    """The comment on ``line`` that silences rules there. Group 2: its list of rules, or None: all rules."""
    return next((found for found in COMMENT.finditer(line) if found[1] == "ignore"), None)


def _comments(text: str) -> list[tuple[int, int, str, bool]]:
    """``(first line, last line, comment, alone)``: the lines of the logical line that each comment
    belongs to; ``alone`` for a comment with a line of its own outside of any statement."""
    found: list[tuple[int, int, str, bool]] = []
    start: int | None = None
    pending: list[str] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(text, newline=None).readline):
            if token.type == tokenize.COMMENT:
                if start is None:
                    found.append((token.start[0], token.start[0], token.string, True))
                else:
                    pending.append(token.string)
            elif token.type == tokenize.NEWLINE:
                if start is not None:
                    found += [(start, token.start[0], comment, False) for comment in pending]
                start, pending = None, []
            elif start is None and token.type not in (tokenize.NL, tokenize.INDENT, tokenize.DEDENT):
                start = token.start[0]
    except (tokenize.TokenError, IndentationError, SyntaxError):
        pass  # what was read up to the error still counts
    return found
