"""The findings of one file at their present lines."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from lsprotocol import types

from warpline.lsp.state.results import Results
from warpline.view.anchor import Anchor
from warpline.view.diagnostics import Notice


@dataclass(frozen=True, slots=True)
class CurrentFindings:
    """What holds for one file as long as nothing that it was made from changes."""

    results: Results
    ignore: Collection[str]
    texts: Mapping[str, tuple[Anchor | None, int]]  # of the files that the findings name
    notices: tuple[Notice, ...]
    by_line: Mapping[int, tuple[Notice, ...]]  # 0-based, in the text as it is now
    by_rule: Mapping[str, tuple[Notice, ...]]
    #: What diagnostic.py made of it, with what that depends on besides.
    shown: dict[object, tuple[str, list[types.Diagnostic]]] = field(default_factory=dict)

    def on_lines(self, first: int, last: int) -> list[Notice]:
        """The notices on lines ``first`` to ``last`` (inclusive), in order."""
        if last - first < len(self.by_line):
            return [notice for line in range(first, last + 1) for notice in self.by_line.get(line, ())]
        return [
            notice for line in sorted(self.by_line) if first <= line <= last for notice in self.by_line[line]
        ]
