"""The note on what the step time leaves out, where loaders begin again in those steps."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.annotated import read_example
from warpline.attribution.notes import begun_loaders

EPOCHS = """\
loader = DataLoader(rows, num_workers=4)
#^ site loader num_workers=4 starts_timed=5 start_ms=200
others = DataLoader(others, num_workers=4)
#^ site loader num_workers=4 starts_timed=5 start_ms=150
"""


@pytest.mark.parametrize(
    ("share", "times", "said"),
    [
        (0.6, 1.0, ["up to 47 % of that time were the beginnings of loaders' epochs (10)"]),
        (0.4, 1.0, ["up to 40 % of that time were the beginnings of loaders' epochs (10)"]),
        (0.6, 0.1, []),
        (0.0, 1.0, []),
    ],
    ids=["most of it", "no more than was left out", "little", "nothing was left out"],
)
def test_beginnings_of_epochs_in_steps_that_are_left_out(share: float, times: float, said: list[str]) -> None:
    profile = read_example(EPOCHS).profile
    manifest = replace(profile.manifest, timed_ns=(30_000_000,) * 45, others_share=share)
    sites = [
        replace(one, facts={**one.facts, "start_ms": one.facts["start_ms"] * times})
        for one in profile.facts.sites
    ]
    facts = replace(profile.facts, sites=tuple(sites))
    assert [note.partition(",")[0] for note in begun_loaders(manifest, facts)] == said
