"""An edit is offered only where its line ran before the measured steps, in a file of the project."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.annotated import FILE, read_example
from warpline.model.profile import Profile
from warpline.model.report import Edit, Fix
from warpline.rulekit.reached import Reached, main_edit, touches
from warpline.syntax.source import Source
from warpline.wire.births import Executed
from warpline.wire.run import Site

TEXT = """\
import torch
ddp = False
model = Net()
if ddp:
    model = wrap(
        model,
    )
for batch in loader:
    train(model,
          batch)
model = torch.load("best.pt")

def score(x):
    return x.item()
"""
RAN = (1, 2, 3, 4, 8, 9, 10)


def _profile(executed: Executed, *sites: Site) -> Profile:
    profile = read_example(TEXT).profile
    return replace(profile, facts=replace(profile.facts, executed=executed, sites=sites))


def _refused(profile: Profile, *edits: tuple[int, int, str], file: str = FILE) -> str | None:
    source = Source(FILE, TEXT)
    fix = Fix(
        "x", "safe", tuple(Edit(file, (line, column), (line, column), text) for line, column, text in edits)
    )
    return Reached(profile).refusal(fix, lambda path: source if path == FILE else None)


ALL = Executed({FILE: RAN}, complete=True)


@pytest.mark.parametrize(
    ("edit", "offered"),
    [
        ((4, 0, "model.compile()\n"), True),  # between the model and the `if`
        ((5, 4, "x"), False),  # in the branch that was not taken
        ((6, 8, "x"), False),  # further down in that statement
        ((5, 0, "    model.compile()\n"), False),
        ((10, 10, "x"), True),  # the second line of a statement that ran
        ((11, 8, "x"), False),  # below the loop
        ((12, 0, "model.compile()\n"), False),
        ((14, 11, "x"), False),  # a function that nothing called
        ((1, 0, "import os\n"), True),
    ],
)
def test_lines_that_ran(edit: tuple[int, int, str], offered: bool) -> None:
    refusal = _refused(_profile(ALL), edit)
    assert (refusal is None) is offered
    assert offered or "did not run before the measured steps" in str(refusal)


def test_one_edit_that_is_not_reached_is_enough() -> None:
    assert _refused(_profile(ALL), (4, 0, "model.compile()\n"), (11, 0, "x")) is not None


@pytest.mark.parametrize(
    "executed",
    [
        Executed(),  # a run from before it was recorded
        Executed({FILE: RAN}, complete=False, why="the script started threads"),
        Executed({FILE: RAN}, partial={FILE: ((1, 14),)}, complete=True),
        Executed({"/example/other.py": (1,)}, complete=True),
    ],
)
def test_what_is_not_known_is_offered(executed: Executed) -> None:
    assert _refused(_profile(executed), (5, 4, "x")) is None


def test_compiled_functions_have_no_lines() -> None:
    compiled = Site("compile", FILE, 3, "<module>")
    assert _refused(_profile(ALL, compiled), (14, 11, "x")) is None
    assert _refused(_profile(ALL, compiled), (5, 4, "x")) is not None


def test_another_project() -> None:
    said = _refused(_profile(ALL), (1, 0, "x"), file="/elsewhere/lib.py")
    assert said == "`lib.py` belongs to another project"


def test_where_the_edit_is() -> None:
    source = Source(FILE, TEXT)
    at = Edit(FILE, (4, 0), (4, 0), "model.compile()\n")
    fix = Fix("x", "unsafe", (Edit(FILE, (1, 0), (1, 0), "import os\n"), at))
    assert main_edit(fix) is at
    assert touches(fix, (FILE, 3), lambda path: source)
    assert not touches(fix, (FILE, 10), lambda path: source)


FITTED = """\
def fit(model):
    for epoch in range(9):
        for batch in loader:
            #^ cost step_ms=0.1 function=fit
            loss = model(batch)
            #^ node aten.relu.default args=[%9] shape=[4] function=fit; cost step_ms=1 function=fit
            loss.backward()
            #^ cost step_ms=1 function=fit

def main():
    model = Net()
    if fast:
        model = fit(model)
        #^ around function=main

main()
#^ around
"""


@pytest.mark.parametrize(
    ("edit", "still"),
    [
        ((3, "        model.train()\n"), None),
        ((6, "            optimizer.step()\n"), None),
        ((6, "        model.eval()\n"), None),  # a round of the outer loop may have ended
        ((6, "    model.eval()\n"), "for epoch in range(9):"),
        ((9, "    model.compile()\n"), None),
        ((11, "        model.compile()\n"), "model = fit(model)"),
        ((11, "    model.compile()\n"), "if fast:"),
        ((12, "model = None\n"), None),
        ((13, "model.compile()\n"), "main()"),
    ],
)
def test_what_stands_below_the_running_calls_is_not_reached(edit: tuple[int, str], still: str | None) -> None:
    profile, text = (example := read_example(FITTED)).profile, example.text
    executed = Executed({FILE: (1, 2, 3, 4, 5, 7, 8, 9, 10, 12)}, complete=True)
    reached = Reached(replace(profile, facts=replace(profile.facts, executed=executed)))
    source, (line, added) = Source(FILE, text), edit
    fix = Fix("x", "safe", (Edit(FILE, (line, 0), (line, 0), added),))
    said = f"`{still}` still runs while the steps do" if still else None
    assert reached.refusal(fix, lambda path: source) == said
    assert [reached.done(source, source.statement_at(at)) for at in (4, 8, 10)] == [True, True, False]
