"""Maps a notebook's run to its cells: each line of the exported script becomes a line of its cell.

What a cell is called in place of a path is its URI, so everything that works on files works on cells.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from warpline.lsp.state.documents import Document
from warpline.lsp.state.results import Results, by_file
from warpline.model.report import Finding, Line, SourceLine
from warpline.notebook.exported import Exported, Part, parse
from warpline.text.alignment import align
from warpline.text.lines import split
from warpline.view.anchor_lines import costs_by_line


def notebook_of(results: Results) -> str | None:
    """The notebook that a run is of."""
    exported = _exported(results)
    return exported.notebook if exported is not None else None


def in_cells(results: Results, cells: Sequence[Document]) -> Results:
    """The results for the notebook's cells as they are open now; what is of none of them stays where it is.

    Fixes keep the script's lines: lsp/methods/cell_edits.py puts them into the cells.
    """
    exported = _exported(results)
    if exported is None:
        return results
    script = results.report.script
    where = dict(_placed(results, exported, cells))
    parts = {part.number: part for part in exported.parts}

    def cell(file: str, line: int) -> tuple[str, int] | None:
        if file != script:
            return None
        part = next((part for part in exported.parts if part.first <= line <= part.last), None)
        uri = where.get(part.number) if part is not None else None
        return (uri, line - part.first + 1) if part is not None and uri is not None else None

    def of_line(line: Line) -> Line:
        at = cell(line.file, line.line)
        if at is None:
            return line
        here = (line.file, line.line)
        own = (
            one if (one.file, one.line) != here else replace(one, file=at[0], line=at[1])
            for one in line.inside
        )
        return replace(line, file=at[0], line=at[1], inside=tuple(own))

    def of_finding(finding: Finding) -> Finding:
        at, cause = cell(finding.file, finding.line), cell(finding.cause.file, finding.cause.line)
        if cause is not None:
            finding = replace(finding, cause=replace(finding.cause, file=cause[0], line=cause[1]))
        other = [cell(*one.place) or one.place for one in finding.also]
        finding = replace(finding, also=tuple(SourceLine(*place) for place in other))
        return finding if at is None else replace(finding, file=at[0], line=at[1])

    text = split(results.sources[script])
    lines = tuple(of_line(line) for line in results.report.lines)
    findings = tuple(of_finding(finding) for finding in results.report.findings)
    texts = {uri: "".join(text[parts[n].first - 1 : parts[n].last]) for n, uri in where.items()}
    return replace(
        results,
        report=replace(results.report, lines=lines, findings=findings),
        sources={**results.sources, **texts},
        costs=costs_by_line(lines),
        findings=by_file(findings),
        loader_ms={cell(*place) or place: ms for place, ms in results.loader_ms.items()},
        inside={cell(*place) or place: words for place, words in results.inside.items()},
        before=None,  # its functions are told by file
        totals=_totals(results, lines, script),
        names={uri: f"Cell {number}" for number, uri in where.items()},
        cells={(script, n): at for n in range(1, len(text) + 1) if (at := cell(script, n)) is not None},
    )


def _totals(results: Results, lines: Sequence[Line], script: str) -> dict[tuple[str, str], float]:
    """The totals of the script's functions, by the cells that define them. What is outside functions belongs
    to the script and to no cell."""
    functions = {(line.file, line.function.replace(".<locals>", "")) for line in lines}
    return {
        (file, name): results.totals[place]
        for file, name in functions
        if (place := (file, name)) in results.totals
        or (name != "<module>" and (place := (script, name)) in results.totals)
    }


def _exported(results: Results) -> Exported | None:
    return parse(results.sources.get(results.report.script, ""))


def _placed(results: Results, exported: Exported, cells: Sequence[Document]) -> Iterator[tuple[int, str]]:
    """(number of the run's cell, URI of the cell that it is now): equal cells in their order, then, between
    two of these, one after the other where as many are left on both sides."""
    lines = split(results.sources[results.report.script])
    then = [_key("".join(lines[part.first - 1 : part.last])) for part in exported.parts]
    now = [_key(cell.text) for cell in cells]
    matched = [(i, at) for at, i in enumerate(align(then, now)) if i >= 0]
    before = (-1, -1)
    for i, at in [*matched, (len(then), len(now))]:
        if i - before[0] == at - before[1]:
            for step in range(1, i - before[0]):
                yield _number(exported.parts, before[0] + step), cells[before[1] + step].uri
        if i < len(then):
            yield _number(exported.parts, i), cells[at].uri
        before = (i, at)


def _number(parts: Sequence[Part], index: int) -> int:
    return parts[index].number


def _key(text: str) -> str:
    """Magics are comments in the script: a cell is known by its other lines."""
    lines = (line.strip() for line in split(text))
    return "\n".join(
        line for line in lines if line and line[0] not in "%!?#" and not line.startswith("pass  #")
    )
