"""The report as one page that needs nothing from anywhere else.

The summary, findings, plan and notes are plain HTML. Charts, tables and sources are drawn by one script
(``page.js``, bundled from ``page/src``) from a block of data in the page; the policy lets no other script run
and nothing be loaded.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from importlib import resources

from warpline.html import composition, data, findings, lines, plan, ranks
from warpline.html.compared import Against, section
from warpline.html.escaped import listed, text
from warpline.model.profile import Profile
from warpline.model.ranks import Rank
from warpline.model.report import Report
from warpline.model.tracks import Timeline
from warpline.view import units
from warpline.view.table import table

_SECTIONS = (
    ("compare", "Compared"),
    ("findings", "Findings"),
    ("plan", "Plan"),
    ("ranks", "Ranks"),
    ("timeline", "Timeline"),
    ("flame", "Flame graph"),
    ("tables", "Tables"),
    ("source", "Source"),
    ("memory", "Memory"),
    ("roofline", "Roofline"),
)
#: Drawn by the script, which shows those it has data for.
_DRAWN = ("timeline", "flame", "tables", "source", "memory", "roofline")


def page(
    report: Report,
    profile: Profile,
    timeline: Timeline | None = None,
    against: Against | None = None,
    roofs: Mapping[str, float] | None = None,
    beside: Sequence[Rank] = (),
    cwd: str = "",
) -> str:
    """The whole page as text. Everything that comes from the run is escaped.

    ``timeline``: the captured steps moment by moment; ``against``: an earlier run to compare with;
    ``roofs``: what the device can do at best (:func:`warpline.pipeline.roofs_of`); ``beside``: all
    ranks of the run (:func:`warpline.pipeline.ranks_of`).
    """
    shown = table(report, profile, cwd=cwd)
    style, script = (_ours(name) for name in ("page.css", "page.js"))
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    names = dict(shown.names)
    drawn = "\n".join(
        f'<section id="{name}" hidden><h2>{heading}</h2></section>'
        for name, heading in _SECTIONS
        if name in _DRAWN
    )
    links = "".join(
        f'<a href="#{name}"{" hidden" if name in _DRAWN else ""}>{heading}</a>'
        for name, heading in _SECTIONS
        if (name != "compare" or against is not None) and (name != "ranks" or len(beside) > 1)
    )
    return "\n".join(
        (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{text(shown.title)} · Warpline</title>\n<style>{style}</style>\n</head>\n<body>",
            f'<header><b class="brand">Warpline</b><nav aria-label="Sections">{links}</nav></header>\n<main>',
            f"<h1>{text(shown.title)}</h1>",
            *(f'<div class="soft">{text(line)}</div>' for line in shown.summary[2:]),
            _figures(report),
            composition.bar(report.composition) if against is None else section(against, report),
            f'<section id="findings"><h2>Findings</h2>\n'
            f"{findings.cards(report.findings, profile.sources, names)}</section>",
            f'<section id="plan"><h2>Plan</h2>\n{plan.table(report.plan, report.findings)}</section>',
            ranks.section(beside, profile.manifest.world_size, timeline),
            drawn,
            f"<noscript><h2>Lines</h2>\n{lines.listing(shown, report.steps.step_ms)}</noscript>",
            listed("Loader workers", shown.workers),
            listed("Marks", shown.marks),
            listed("Fused lines", shown.groups),
            listed("Notes", (shown.unattributed, *report.notes)),
            _rules(report),
            "</main>",
            '<script type="application/octet-stream" id="data">'
            f"{data.block(report, profile, timeline, roofs or {}, names, beside)}</script>",
            f"<script>{script}</script>\n</body>\n</html>\n",
        )
    )


def _ours(name: str) -> str:
    """A file beside this one, fit to stand inside an element as it is."""
    found = resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
    return found.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _hash(content: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode("ascii")


def _rules(report: Report) -> str:
    found = findings.rules(report.findings)
    return f'<section id="rules"><h2>Rules</h2>\n{found}</section>' if found else ""


def _figures(report: Report) -> str:
    steps = report.steps
    timed = steps.step_ms != steps.profiled_step_ms  # else only a trace is there
    shown = (
        (
            units.ms(steps.step_ms),
            "a step, without the profiler" if timed else "a step, under the profiler",
        ),
        (units.percentage(steps.device_busy_percent), "of it the device is busy"),
        *(
            [(units.ms(steps.profiled_step_ms), f"with the profiler, {units.slowdown(steps.slowdown)}")]
            if timed
            else []
        ),
        (units.count(steps.captured), "steps captured"),
    )
    boxes = (f'<div class="figure"><b>{text(value)}</b>{text(name)}</div>' for value, name in shown)
    return f'<div class="figures">{"".join(boxes)}</div>'
