"""Fixes follow the text: made anew after edits, and several in one file."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.annotated import FILE, Example, read_example
from warpline.diagnosis import diagnose, fixes, together
from warpline.model.change import Change, Replace
from warpline.model.profile import Profile
from warpline.model.report import Predicted
from warpline.text.alignment import matched
from warpline.text.edits import apply
from warpline.wire.births import Argument, Holder

CODE = """\
#> totals idle_ms=30
import torch
from torch.utils.data import DataLoader

loader = DataLoader(dataset, batch_size=32)  #> site loader num_workers=0 pin_memory=false
total = 0.0
for images in loader:  #> cost cpu_ms=40 idle_ms=40 loader_ms=40; use loader
    images = images.cuda()  #> cost device_ms=6 copy_ms=6
    #^ kernel "Memcpy HtoD (Pageable -> Device)" device_ms=6 kind=copy
    loss = train(images)  #> cost device_ms=10
    total += loss.item()  #> cost cpu_ms=9 sync_ms=9 step_ms=0.5
    torch.cuda.empty_cache()  #> cost cpu_ms=4 idle_ms=4
"""

ALL_FIXED = """\
import torch
from torch.utils.data import DataLoader

loader = DataLoader(dataset, batch_size=32, num_workers=4, persistent_workers=True, pin_memory=True)
total = 0.0
for images in loader:
    images = images.cuda(non_blocking=True)
    loss = train(images)
    total += loss.detach().double()
total = float(total)
"""


@pytest.fixture
def example() -> Example:
    return read_example(CODE)


def test_a_second_value_of_a_line_is_found_where_the_first_has_changed() -> None:
    settings = 'CFG = {"w": 0, "p": False, "k": False}'
    call = 'DataLoader(dataset, batch_size=32, num_workers=CFG["w"], pin_memory=CFG["p"])'
    example = read_example(
        CODE.replace("DataLoader(dataset, batch_size=32)", call, 1).replace("total = 0.0", settings)
    )
    line = example.text.split("\n").index(settings) + 1
    given = tuple(
        Argument(name, value, True, Holder("entry", FILE, line, settings.index(word) + 5, word[1]))
        for name, value, word in (("num_workers", 0, '"w": 0'), ("pin_memory", False, '"p": False'))
    )
    sites = tuple(replace(one, arguments=given) for one in example.profile.facts.sites)
    profile = replace(example.profile, facts=replace(example.profile.facts, sites=sites))
    made = together(profile, diagnose(profile, profile.sources.get).findings, profile.sources.get)
    (changed,) = [one for one in made.texts[FILE].split("\n") if one.startswith("CFG")]
    assert '"w": 4' in changed
    assert '"p": True' in changed
    assert '"k": False' in changed


def test_all_fixes_of_a_file_together(example: Example) -> None:
    found = diagnose(example.profile, example.profile.sources.get).findings
    made = together(example.profile, found, example.profile.sources.get)
    assert made.texts == {FILE: ALL_FIXED}
    assert len(made.changes) == len(found) == 4
    assert made.skipped == ()


def test_a_fix_is_made_anew_on_the_text_as_it_is(example: Example) -> None:
    finding = diagnose(example.profile, example.profile.sources.get).findings[0]
    now = "# new first line\n" + example.text.replace("batch_size=32)", "batch_size=64)")
    (fix,) = fixes(example.profile, finding, lambda path: now)
    expected = "DataLoader(dataset, batch_size=64, num_workers=4, persistent_workers=True)"
    assert expected in apply(now, fix.edits)


def test_no_fix_where_the_line_is_gone_or_done(example: Example) -> None:
    finding = diagnose(example.profile, example.profile.sources.get).findings[0]
    gone = example.text.replace("loader = DataLoader(dataset, batch_size=32)\n", "")
    assert fixes(example.profile, finding, lambda path: gone) == ()
    done = apply(example.text, finding.fixes[0].edits)
    assert fixes(example.profile, finding, lambda path: done) == ()


TWO_WAYS = """\
#> steps step_ms=40 device_busy_percent=30
model = Net().cuda()
for x in batches:
    loss = model(x).mean()
    #^ cost step_ms=25 device_ms=6 idle_ms=19 cpu_ms=25 launches=1500
    loss.backward()  #> cost step_ms=15 device_ms=5 idle_ms=10 cpu_ms=15 launches=1000

class Net(nn.Module):
    def forward(self, x): ...
"""


@pytest.mark.parametrize("graphs_ms", [20.0, 45.0])
def test_the_fix_that_is_made_is_the_one_that_the_promise_is_for(graphs_ms: float) -> None:
    """Compiled, the step gains nothing; as CUDA graphs it may, and these come first then."""
    example = read_example(TWO_WAYS)

    def predict(_: Profile, change: Change) -> Predicted:
        graphs = isinstance(change, Replace) and change.options[0] == "reduce-overhead"
        step_ms = graphs_ms if graphs else 40.0
        return Predicted(step_ms, 40.0 / step_ms, "estimate")

    found = diagnose(example.profile, example.profile.sources.get, predict=predict)
    (finding,) = (*found.findings, *found.below)
    assert ("CUDA graphs" in finding.fixes[0].title) == (graphs_ms < 40)
    again = fixes(example.profile, finding, example.profile.sources.get)
    assert [fix.title for fix in again] == [fix.title for fix in finding.fixes]
    made = together(example.profile, [finding], example.profile.sources.get)
    assert ('model.compile(mode="reduce-overhead")' in made.texts[FILE]) == (graphs_ms < 40)


def test_lines_are_followed_through_edits() -> None:
    old = "a = first()\nb = second(a)\nc = third(b)\n"
    new = "import x\na = first()\nwith y:\n    b = second(a, more=1)\n    c = third(b)\n"
    assert matched(old, new) == {1: 2, 2: 4, 3: 5, 4: 6}
    assert matched(old, "import z\n") == {4: 2}
    # What is equal at both ends is taken for the same, and never for two lines at once.
    assert matched("x\nx\nx\n", "x\nx\n") == {1: 1, 2: 2, 4: 3}
    assert matched("x\nx\n", "x\nx\nx\n") == {1: 1, 2: 2, 3: 4}
    assert matched(old, old + "d = 1\n") == {1: 1, 2: 2, 3: 3, 4: 5}
