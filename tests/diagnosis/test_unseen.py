"""What a close look hides: the gate judges it by the timing window, not by a replay of that look."""

from __future__ import annotations

import pytest

from tests.annotated import read_example, texts
from warpline.diagnosis.diagnose import diagnose
from warpline.model.change import Change, OverlapCopies
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


CROWDED = """\
#> totals idle_ms=10 stalled_ms={stalled} queued_ms={queued}; flags surveyed_ms=20; steps step_ms=20
def update(batch):
    loss = train(batch)  #> cost device_ms=10 idle_ms=1 step_ms=11
    return {{
        "loss": loss.item(),
        #^ cost sync_ms=0.02 syncs=1 step_ms=0.1; site sync what=item calls=1 wait_ms=0.09 direct=true
        #^ kernel "Memcpy DtoH (Device -> Pinned)" kind=copy device_ms=0.002
        "gap": gap.item(),
        #^ cost sync_ms=0.02 syncs=1 step_ms=0.1; site sync what=item calls=1 wait_ms=0.02 direct=true
        #^ kernel "Memcpy DtoH (Device -> Pinned)" kind=copy device_ms=0.002
    }}
def sample():
    return pinned(rows)  #> cost idle_ms=9 step_ms=9
"""


@pytest.mark.parametrize(("stalled", "queued"), [(9, 0), (0, 9), (5, 4)])
def test_other_processes_on_the_cores_hide_a_wait_as_well(stalled: float, queued: float) -> None:
    example = read_example(CROWDED.format(stalled=stalled, queued=queued))
    result = diagnose(example.profile, texts(example), predict=nothing_gained)
    (one,) = [one for one in result.findings if one.rule == "sync-in-step"]
    assert (one.line, one.severity, one.predicted) == (4, "hint", None)
    assert "other processes, which have 9.00 ms of the host's time, it may lose up to 9.09 ms" in one.message
    assert "Later lines read values too (1)" in one.message


def test_without_them_it_is_as_short_as_it_looks() -> None:
    example = read_example(CROWDED.format(stalled=0.2, queued=0))
    result = diagnose(example.profile, texts(example), predict=nothing_gained)
    assert [one for one in result.findings if one.rule == "sync-in-step"] == []


def test_work_of_the_device_between_two_reads_makes_both_wait() -> None:
    example = read_example(
        """\
#> totals idle_ms=10 stalled_ms=9; flags surveyed_ms=20; steps step_ms=20
def update(batch):
    seen = train(batch).item()
    #^ cost device_ms=2 sync_ms=0.02 syncs=1 step_ms=16; site sync what=item calls=1 wait_ms=0.09 direct=true
    gap = evaluate(batch)  #> cost device_ms=8 step_ms=8; kernel gemm device_ms=8
    return seen, gap.item()
    #^ cost sync_ms=0.02 syncs=1 step_ms=0.1; site sync what=item calls=1 wait_ms=0.02 direct=true
"""
    )
    result = diagnose(example.profile, texts(example), predict=nothing_gained)
    assert sorted(one.line for one in result.findings if one.rule == "sync-in-step") == [2, 4]


COPIES = """\
#> totals idle_ms=8; flags surveyed_ms={surveyed}; steps step_ms=20 profiled_step_ms={profiled}
for images, labels in loader:
    images = images.to("cuda"{how})
    #^ cost sync_ms=0.02 syncs=1 device_ms=0.3 step_ms=0.4; site to pinned={pinned} non_blocking=false {timed}
    #^ kernel "Memcpy HtoD (Pinned -> Device)" kind=copy device_ms=0.3
    labels = labels.to("cuda"{how})
    #^ cost sync_ms=0.01 syncs=1 device_ms=0.01 step_ms=0.1; site to pinned={pinned} non_blocking=false
    #^ kernel "Memcpy HtoD (Pinned -> Device)" kind=copy device_ms=0.01
    crops = drawn(images.shape)  #> cost idle_ms=3 step_ms=3
    train(images, labels, crops)  #> cost device_ms=12 idle_ms=5 step_ms=16.5
"""


def copies(after: float | None, **facts: object) -> list[tuple[int, str, str, str]]:
    """What is found of copies where a replay without the waits takes ``after``: with the fix's edits."""

    def predict(profile: Profile, change: Change) -> Predicted | None:
        assert isinstance(change, OverlapCopies)
        assert [line for _, line in change.places] == [2, 3]
        return None if after is None else Predicted(after, 20.0 / after, "simulated")

    known = {"surveyed": 25, "profiled": 60, "how": "", "pinned": "true", "timed": ""} | facts
    example = read_example(COPIES.format(**known))
    result = diagnose(example.profile, texts(example), predict=predict)
    return [
        (one.line, one.severity, one.predicted.basis if one.predicted else "", one.message)
        for one in result.findings
        if one.rule == "blocking-host-copy"
    ]


def test_a_copy_that_the_profiled_host_does_not_wait_for_is_found_by_a_replay() -> None:
    ((line, severity, basis, message),) = copies(16.0)
    assert (line, severity, basis) == (2, "warning", "simulated")
    assert "0.030 ms of each step; without it up to 8.00 ms (40 %)" in message


@pytest.mark.parametrize("after", [None, 19.95, 20.0])
def test_where_no_replay_gains_there_is_none(after: float | None) -> None:
    assert copies(after) == []


@pytest.mark.parametrize(
    ("timed", "surveyed", "most"),
    [("wait_ms=0.1", 20.5, "0.60 ms"), ("wait_ms=0.1", 19.0, "0.10 ms")],
)
def test_a_survey_that_slowed_the_host_little_limits_it(timed: str, surveyed: float, most: str) -> None:
    found = copies(16.0, timed=timed, surveyed=surveyed)
    assert [most in message for *_, message in found] == [True] * (most == "0.60 ms")


def test_a_wait_that_the_survey_timed_is_seen() -> None:
    ((_, _, basis, message),) = copies(None, timed="wait_ms=3.0", surveyed=20.5)
    assert basis == "bound"
    assert message.startswith("The host waits 3.00 ms of each step")


def test_a_part_that_is_seen_does_not_limit_what_the_replay_gains() -> None:
    """The copies wait 3 ms of the surveyed step, which was slower by 5 ms."""
    ((_, severity, _, message),) = copies(16.0, timed="wait_ms=3.0")
    assert "3.00 ms of each step; without it up to 8.00 ms (40 %)" in message
    assert severity == "warning"  # by the 4 ms of the replay
    ((_, _, basis, _),) = copies(None, timed="wait_ms=3.0")
    assert basis == "bound"


@pytest.mark.parametrize("facts", [{"pinned": "false"}, {"profiled": 20}])
def test_pageable_ones_and_hosts_that_were_not_slowed_are_not_asked_about(facts: dict[str, object]) -> None:
    assert copies(16.0, **facts) == []
