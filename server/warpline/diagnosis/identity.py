"""Ids of findings: the same after edits elsewhere in the file, on another machine, in another run."""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import PurePath

from warpline.rulekit import Draft


def identities(
    drafts: Sequence[tuple[str, Draft]], roots: Sequence[str], texts: Callable[[str], str | None]
) -> list[str]:
    """``rule-1a2b3c4d`` for each ``(rule, draft)``: of the rule, the file's path below the project,
    and what the line says; equal lines are numbered in their order."""
    made: dict[int, str] = {}
    seen: Counter[tuple[str, str, str]] = Counter()
    order = sorted(range(len(drafts)), key=lambda i: (drafts[i][1].file, drafts[i][1].line, i))
    for index in order:
        rule, draft = drafts[index]
        key = (rule, _relative(draft.file, roots), _line(texts(draft.file), draft.line))
        number = seen[key]
        seen[key] += 1
        parts = "\0".join((*key, str(number) if number else ""))
        made[index] = f"{rule}-{hashlib.sha256(parts.encode('utf-8', 'replace')).hexdigest()[:8]}"
    return [made[index] for index in range(len(drafts))]


def _relative(file: str, roots: Sequence[str]) -> str:
    for root in roots:
        if file.startswith(root.rstrip("/\\") + os.sep):
            return PurePath(file).relative_to(root).as_posix()
    return PurePath(file).name


def _line(text: str | None, line: int) -> str:
    lines = re.split(r"\r\n|\r|\n", text) if text is not None else []
    return "".join(lines[line - 1].split()) if 0 < line <= len(lines) else str(line)
