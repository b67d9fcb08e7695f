"""What a close look hides: the gate judges it by the timing window, not by a replay of that look."""

from __future__ import annotations

import pytest

from tests.annotated import read_example, texts
from warpline.diagnosis.diagnose import diagnose
from warpline.model.change import Change
from warpline.model.profile import Profile
from warpline.model.report import Predicted

CODE = """\
#> totals idle_ms=8; flags surveyed_ms={surveyed}; steps step_ms=20
for images, labels in loader:
    loss = train(images, labels)  #> cost device_ms=12 idle_ms=8 step_ms=19.9
    if not torch.isfinite(loss):
        #^ cost cpu_ms=0.1 sync_ms=0.02 step_ms=0.1 syncs={syncs}
        #^ site sync what=bool calls=1 wait_ms={wait} direct={direct}
        break
"""


def nothing_gained(profile: Profile, change: Change) -> Predicted:
    return Predicted(20.0, 1.0, "simulated")


def found(**facts: object) -> list[tuple[int, str, Predicted | None]]:
    known = {"surveyed": 24, "syncs": 1, "wait": 0.05, "direct": "true"} | facts
    example = read_example(CODE.format(**known))
    result = diagnose(example.profile, texts(example), predict=nothing_gained)
    return [(one.line, one.severity, one.predicted) for one in result.findings if one.rule == "sync-in-step"]


def test_a_wait_that_the_look_shortened_is_a_hint_and_promises_nothing() -> None:
    assert found() == [(3, "hint", None)]


def test_a_wait_that_was_timed_without_the_profiler_is_its_own_bound() -> None:
    ((line, severity, after),) = found(wait=5)
    assert (line, severity) == (3, "warning")
    assert after is not None and after.basis == "bound" and after.step_ms == pytest.approx(15.0)


@pytest.mark.parametrize(
    "facts",
    [
        {"surveyed": 20.0},  # the host was not slowed, so the wait is as short as it looks
        {"syncs": 0},  # the captured steps do not wait here
        {"direct": "false"},  # torch's or a library's own code asks for it
    ],
)
def test_it_has_to_be_in_each_step_and_the_scripts_own(facts: dict[str, object]) -> None:
    assert found(**facts) == []
