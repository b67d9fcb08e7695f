"""Notes on lines that changed since the run, for tables that show the text of the run."""

from __future__ import annotations

from collections.abc import Callable

from warpline.model.report import Report
from warpline.text.lines import lines_of, split
from warpline.view import text
from warpline.view.anchor import Anchor

#: Moves that are named, of the costliest lines.
_NAMED = 3


def notes(
    report: Report, sources: dict[str, str], text_now: Callable[[str], str | None], cwd: str = ""
) -> tuple[str, ...]:
    """One note for each file that has lines in ``report`` and another text than when it ran.

    ``sources``: the texts that ran; ``text_now``: a file's text now, None when it cannot be read.
    """
    names = text.names({line.file for line in report.lines} | {report.script}, cwd)
    found = []
    for file in dict.fromkeys(line.file for line in report.lines):
        ran, now = sources.get(file), text_now(file)
        if ran is None or now is None or lines_of(ran) == lines_of(now):
            continue
        anchor = Anchor(ran, split(now))
        costly = sorted((line for line in report.lines if line.file == file), key=lambda line: -line.step_ms)
        moved, lost = [], 0
        for number in dict.fromkeys(line.line for line in costly):
            at = anchor.where(number - 1)
            if at < 0 or anchor.stale(at):
                lost += 1
            elif at != number - 1:
                moved.append(f"{number} is {at + 1} now")
        found.append(_said(names[file], moved, lost))
    return tuple(found)


def _said(name: str, moved: list[str], lost: int) -> str:
    said = f"{name} was changed after the run: the lines shown are those that ran"
    if moved:
        said += f"; line {', '.join(moved[:_NAMED])}" + (" and so on" if len(moved) > _NAMED else "")
    if lost:
        said += f"; {'1 line is' if lost == 1 else f'{lost} lines are'} gone or changed"
    return said
