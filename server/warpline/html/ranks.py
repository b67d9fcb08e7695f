"""Ranks side by side: a bar for each, what its communication costs, and each line on every rank."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from warpline.html import composition
from warpline.html.escaped import text
from warpline.model.ranks import Rank
from warpline.model.tracks import Timeline
from warpline.view import units

#: Columns of exchanges: name in ``Profile.totals``, head, tooltip.
_EXCHANGES = (
    ("communication_ms", "exchanges", "time in collectives"),
    ("exposed_communication_ms", "exposed", "communication that is not overlapped with compute"),
    ("collective_wait_ms", "waits", "part of that spent waiting for the last rank"),
)


def section(ranks: Sequence[Rank], world: int, timeline: Timeline | None) -> str:
    """The whole section, heading included; the page's script adds the table of lines. "" for one rank.

    ``world``: how many ranks the run had, those that are not here included.
    """
    if len(ranks) < 2:
        return ""
    longest = max(rank.report.steps.step_ms for rank in ranks)
    # Gloo's collectives have no device time: 0 on every rank is not a measurement.
    columns = [each for each in _EXCHANGES if any(rank.totals.get(each[0]) for rank in ranks)]
    rows = "".join(_row(rank, [name for name, _, _ in columns], longest) for rank in ranks)
    heads = "".join(
        f'<th title="{tip}">{head}</th>'
        for head, tip in (
            ("rank", ""),
            ("step", "without the profiler"),
            ("busy", "share of the step in which the device is busy"),
            ("", ""),
            *((head, tip) for _, head, tip in columns),
        )
    )
    said = "".join(f'<p class="soft">{text(note)}</p>' for note in _notes(ranks, world, timeline))
    return (
        f'<section id="ranks"><h2>Ranks side by side</h2><p>{text(_summary(ranks))}</p>'
        f'<div class="lines"><table class="ranks"><tr>{heads}</tr>{rows}</table></div>'
        f"{composition.legend(composition.used([rank.report.composition for rank in ranks]))}{said}</section>"
    )


def _notes(ranks: Sequence[Rank], world: int, timeline: Timeline | None) -> Iterator[str]:
    if world > len(ranks):
        yield f"{world - len(ranks)} of {world} ranks have no readable run here."
    if timeline is not None and any(track.name.startswith("Rank ") for track in timeline.tracks):
        yield (
            "The other ranks are at the end of the timeline. Their clocks differ, so each rank is "
            "shifted until its collectives end with the others', or, if they cannot be matched, "
            "until the first steps begin together."
        )


def data(ranks: Sequence[Rank]) -> list[dict[str, Any]]:
    """What the script needs of each rank; the numbers are those of its JSON report."""
    return [
        {
            "rank": rank.number,
            "step_ms": rank.report.steps.step_ms,
            "lines": [
                {"file": line.file, "line": line.line, "step_ms": line.step_ms} for line in rank.report.lines
            ],
        }
        for rank in ranks
        if len(ranks) > 1
    ]


def _summary(ranks: Sequence[Rank]) -> str:
    times = [rank.report.steps.step_ms for rank in ranks]
    slowest = max(ranks, key=lambda rank: rank.report.steps.step_ms)
    mean = sum(times) / len(times)
    return (
        f"{len(ranks)} ranks, {units.ms(mean)} a step on average; the slowest is rank "
        f"{slowest.number} with {units.ms(max(times))}."
    )


def _row(rank: Rank, exchanges: Sequence[str], longest: float) -> str:
    steps = rank.report.steps
    spent = (units.ms(rank.totals[name]) if name in rank.totals else "" for name in exchanges)
    return (
        f'<tr data-rank="{rank.number}"><td class="number">{rank.number}</td>'
        f'<td class="number">{text(units.ms(steps.step_ms))}</td>'
        f'<td class="number">{text(units.percentage(steps.device_busy_percent))}</td>'
        f'<td class="chart">{composition.boxes(rank.report.composition, longest)}</td>'
        + "".join(f'<td class="number">{text(value)}</td>' for value in spent)
        + "</tr>"
    )
