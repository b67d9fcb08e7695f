"""Lines that ran, and places that hold values, move with the text."""

from __future__ import annotations

from dataclasses import replace

from tests.annotated import FILE, read_example
from warpline.diagnosis.rebase import Made, rebase
from warpline.model.profile import Profile
from warpline.model.report import Edit
from warpline.rulekit.reached import Reached
from warpline.syntax.source import Source
from warpline.text.edits import apply
from warpline.wire.births import Argument, Executed, Holder, UserFrame
from warpline.wire.dataflow import Dataflow, Frame, OperatorSite
from warpline.wire.run import Site

THEN = "workers = 0\nif never:\n    workers = 4\nloader = DataLoader(data, num_workers=workers)\n"


def _profile() -> Profile:
    held = Argument("num_workers", 0, True, Holder("variable", FILE, 1, 10, "workers"))
    site = Site("loader", FILE, 4, "<module>", frames=(UserFrame(FILE, 4, "<module>"),), arguments=(held,))
    profile = read_example(THEN).profile
    facts = replace(profile.facts, sites=(site,), executed=Executed({FILE: (1, 2, 4)}, complete=True))
    return replace(profile, facts=facts)


def test_they_move() -> None:
    now = "import os\nos.nice(1)\n" + THEN
    moved = rebase(_profile(), lambda path: now)
    (site,) = moved.facts.sites
    (argument,) = site.arguments
    assert argument.holder == Holder("variable", FILE, 3, 10, "workers")
    assert [frame.line for frame in site.frames] == [6]
    assert moved.facts.executed.lines == {FILE: (3, 4, 6)}
    reached, source = Reached(moved), Source(FILE, now)
    ran = [reached.statement(source, source.statement_at(line)) for line in (2, 3, 5, 6)]
    assert ran == [None, True, False, True]  # nobody knows of a line that was written since


def test_a_holder_whose_line_changed() -> None:
    (site,) = rebase(_profile(), lambda path: THEN.replace("workers = 0", "workers = 10")).facts.sites
    holder = site.arguments[0].holder
    assert holder is not None and (holder.line, holder.column) == (1, -1)
    (site,) = rebase(_profile(), lambda path: THEN.replace("workers = 0", "workers: int = 0")).facts.sites
    holder = site.arguments[0].holder
    assert holder is not None and (holder.line, holder.column) == (1, 15)
    (site,) = rebase(_profile(), lambda path: THEN.replace("workers = 0\n", "")).facts.sites
    assert site.arguments[0].holder is None


def test_operators_move_with_their_lines() -> None:
    profile = _profile()
    sites = tuple(OperatorSite(FILE, line, "<module>") for line in (1, 4))
    profile = replace(profile, facts=replace(profile.facts, dataflow=Dataflow(sites=sites)))
    moved = rebase(profile, lambda path: THEN.replace("workers = 0\n", "")).facts.dataflow
    assert [site.line for site in moved.sites] == [0, 3]


def test_instructions_that_ran_move_with_their_lines() -> None:
    profile = _profile()
    frames = tuple(Frame(FILE, line, "<module>", (line, 0, 4)) for line in (1, 2, 4))
    profile = replace(profile, facts=replace(profile.facts, dataflow=Dataflow(frames=frames)))
    before, changed, after = rebase(
        profile, lambda path: "# new\n" + THEN.replace("workers = 0", "workers = 1")
    ).facts.dataflow.frames
    assert [before.line, changed.line, after.line] == [2, 3, 5]
    assert [before.span, changed.span, after.span] == [(), (3, 0, 4), (5, 0, 4)]


def test_places_after_edits_are_exact() -> None:
    text = "a = f(1, 1)  # both\nb = 2\n"
    edits = [
        Edit(FILE, (1, 6), (1, 7), "8"),
        Edit(FILE, (1, 10), (1, 10), ", [\n    3,\n], g(4)"),
        Edit(FILE, (2, 0), (2, 0), "c = 3\n"),
    ]
    profile = replace(_profile(), sources={FILE: text})
    made = Made(profile, lambda path: apply(text, edits), {FILE: edits})
    assert [made.now((FILE, line)) for line in (1, 2)] == [(FILE, 1), (FILE, 5)]
    assert made.column((FILE, 1), 6) == -1  # replaced
    assert made.column((FILE, 1), 9) == 9  # the same digit, which stays
    assert made.column((FILE, 1), 13) == -1  # on another line than that which goes for this one
    assert made.column((FILE, 2), 4) == 4


def test_a_line_that_an_edit_takes_away_is_gone() -> None:
    edits = [Edit(FILE, (1, 0), (2, 0), ""), Edit(FILE, (3, 4), (3, 15), "workers = 8")]
    made = Made(_profile(), lambda path: apply(THEN, edits), {FILE: edits})
    assert [made.now((FILE, line)) for line in (1, 2, 3, 4)] == [None, (FILE, 1), (FILE, 2), (FILE, 3)]
