"""What noise hides: a share of the step's own work on a CPU stays one, whatever others do to the step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.annotated import FILE, read_example
from warpline.diagnosis import diagnose
from warpline.model.change import Change, Fuse, LoaderWorkers, Replace, Scale, Together
from warpline.model.profile import Profile
from warpline.model.report import Basis, Predicted
from warpline.rulekit import Context, Draft, Rule, ms

CODE = """\
#> steps step_ms=100
for batch in loader:
    table = positions(batch)  #> cost cpu_ms=3 step_ms=3
    train(batch, table)  #> cost cpu_ms=97 step_ms=97
"""
PLACES = ((FILE, 3),)
GONE = Scale(PLACES)
NOISY_NS = (80_000_000, 120_000_000) * 10


class Tables(Rule):
    area = "fusion"
    change: Change = GONE
    tried = False

    def find(self, context: Context) -> Iterator[Draft]:
        spent = {"spent": ms("spent", 3.0)}
        yield context.draft((FILE, 3), "{spent}.", spent, cost_ms=3.0, change=self.change, tried=self.tried)


def lines(
    change: Change = GONE,
    device: str = "cpu",
    basis: Basis = "simulated",
    saved: float = 3.0,
    tried: bool = False,
) -> list[int]:
    def predict(profile: Profile, change: Change) -> Predicted:
        return Predicted(100 - saved, 100 / (100 - saved), basis)

    profile = read_example(CODE).profile
    kind = replace(profile.manifest.device, kind=device)
    profile = replace(profile, manifest=replace(profile.manifest, device=kind, timed_ns=NOISY_NS))
    rule = Tables()
    rule.change, rule.tried = change, tried
    found = diagnose(profile, profile.sources.get, predict=predict, catalogue=[rule])
    return [one.line for one in found.findings]


@pytest.mark.parametrize("change", [GONE, Replace("cat", PLACES, GONE), Together((GONE, GONE))])
def test_work_that_would_go_away_is_shown(change: Change) -> None:
    assert lines(change) == lines(change, basis="probed") == [3]


def test_noise_hides_what_others_may_have_made() -> None:
    assert lines(device="cuda") == []  # the host's share is another one where others use the cores
    assert lines(basis="bound") == lines(basis="estimate") == lines(tried=True, basis="probed") == []
    assert lines(LoaderWorkers(2)) == []
    assert lines(Fuse(PLACES)) == lines(Replace("attention", PLACES, Fuse(PLACES))) == []
    assert lines(saved=0.9) == []
