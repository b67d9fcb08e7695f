"""What steps wait for workers' batches, where the captured ones find them ready."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.annotated import read_example, texts
from warpline.diagnosis.diagnose import diagnose
from warpline.rulekit import Context
from warpline.rules.loader_workers_restart import LoaderWorkersRestart
from warpline.wire.facts import Nvml
from warpline.wire.workers import WorkerLine, Workers

CODE = """\
#> totals idle_ms=22; steps step_ms=40
from torch.utils.data import DataLoader
class Beats:
    def __getitem__(self, index):
        return [curve(value) for value in self.signal[index]]
loader = DataLoader(Beats(), 64, num_workers=4)
#^ site loader num_workers=4 batches_per_epoch=400 wait_ms={wait}
for beats, labels in loader:  #> cost cpu_ms=0.1 step_ms=0.1; use loader
    train(beats, labels)  #> cost device_ms=18 idle_ms=21.9 step_ms=39.9
"""


def found(wait: float) -> dict[str, tuple[int, float]]:
    example = read_example(CODE.format(wait=wait))
    of_lines = tuple(
        WorkerLine("/example/train.py", 4, name, share, 64.0)
        for name, share in (("Beats.__getitem__", 10.0), ("Beats.__getitem__.<locals>.<listcomp>", 90.0))
    )
    facts = replace(example.profile.facts, workers=Workers(4, 110.0, of_lines))
    result = diagnose(replace(example.profile, facts=facts), texts(example))
    return {
        one.rule: (one.line, next(each.value for each in one.evidence if each.metric == "exposed wait"))
        for one in result.findings
    }


def test_the_timing_window_says_what_they_wait() -> None:
    assert found(20.0) == {
        "slow-sample-line": (4, 20.0),
        "too-few-loader-workers": (5, 20.0),
    }


def test_no_more_than_the_device_is_idle() -> None:
    assert found(35.0)["slow-sample-line"] == (4, pytest.approx(22.0))


def test_nor_than_its_kernels_leave_of_a_step_that_took_longer_than_the_captured_ones() -> None:
    code = CODE.replace("totals idle_ms=22", "totals idle_ms=0 device_ms=22; workers batch_ms=150")
    example = read_example(code.format(wait=30))
    (finding,) = diagnose(example.profile, texts(example)).findings
    assert finding.rule == "too-few-loader-workers"
    assert next(each.value for each in finding.evidence if each.metric == "exposed wait") == 18.0


LOADER = 2  # lines without the directives
SHORT = """\
#> totals idle_ms=22; steps step_ms=40 busy=45
from torch.utils.data import DataLoader
loader = DataLoader(data, 64, num_workers=4)
#^ site loader num_workers=4 persistent_workers=false batches_per_epoch=12 epochs_started=6 wait_ms={wait}
for beats, labels in loader:  #> cost cpu_ms=0.1 step_ms=0.1; use loader
    train(beats, labels)
    #^ cost device_ms=1 idle_ms=21.9 step_ms=39.9 launches=100; kernel elementwise count=100 device_ms=1
"""


def found_in_short_epochs(wait: float) -> dict[str, int]:
    example = read_example(SHORT.format(wait=wait))
    return {one.rule: one.line for one in diagnose(example.profile, texts(example)).findings}


def test_workers_that_start_again_are_waited_for_outside_the_captured_steps() -> None:
    assert found_in_short_epochs(21.0) == {"loader-workers-restart": LOADER}


def test_launching_is_to_blame_for_what_is_no_wait_for_batches() -> None:
    assert found_in_short_epochs(0.0) == {"launch-bound": LOADER + 2}


def test_none_where_batches_were_ready_then_too() -> None:
    assert found(0.2) == {}


AHEAD = """\
#> totals idle_ms=12; steps step_ms=30; flags cpu_count=16
from torch.utils.data import DataLoader
loader = DataLoader(letters, 256, num_workers=6, persistent_workers=True)
#^ site loader num_workers=6 persistent_workers=true batches_per_epoch=50 wait_ms=9
for letter in loader:  #> cost calls={batches} cpu_ms=0.1 step_ms=0.1; use loader
    train(letter)  #> cost device_ms=18 idle_ms=11.9 step_ms=29.9
"""


def blamed(timed_ms: list[float], batch_ms: float | None = None, batches: int = 1) -> float | None:
    """The wait that too few workers are blamed for."""
    example = read_example(AHEAD.format(batches=batches))
    workers = None if batch_ms is None else Workers(0, batch_ms, ())
    profile = replace(
        example.profile,
        facts=replace(example.profile.facts, workers=workers),
        manifest=replace(example.profile.manifest, timed_ns=tuple(int(1e6 * one) for one in timed_ms)),
    )
    found = [
        one for one in diagnose(profile, texts(example)).findings if one.rule == "too-few-loader-workers"
    ]
    values = [each.value for one in found for each in one.evidence if each.metric == "exposed wait"]
    return values[0] if values else None


def test_workers_that_keep_up_are_not_too_few() -> None:
    """A step takes 21 ms without its wait, and in that time six workers make a batch of 126 ms."""
    assert blamed([30.0] * 60, batch_ms=125.0) is None
    assert blamed([30.0] * 60, batch_ms=127.0) == 9.0
    assert blamed([21.0] * 50 + [75.0] * 10, batch_ms=127.0) == 9.0, "all of the wait, also in bursts"


def test_steps_of_several_batches_need_as_many_from_the_workers() -> None:
    assert blamed([30.0] * 60, batch_ms=40.0, batches=4) == 9.0
    assert blamed([30.0] * 60, batch_ms=31.0, batches=4) is None


def test_an_unknown_time_for_a_batch_blames_nobody() -> None:
    assert blamed([30.0] * 60) is None


@pytest.mark.parametrize(
    ("cores", "busy", "found"), [(9, 1.0, 8), (7, 1.0, None), (7, 0.5, 10), (4, 0.1, 10)]
)
def test_workers_need_processors_as_far_as_they_compute(cores: int, busy: float, found: int | None) -> None:
    example = read_example(AHEAD.replace("=16", f"={cores}").format(batches=1))
    facts = replace(example.profile.facts, workers=Workers(0, 150.0, (), busy=busy))
    told = diagnose(replace(example.profile, facts=facts), texts(example)).findings
    counts = [each.value for one in told for each in one.evidence if each.metric == "sensible num_workers"]
    assert counts == ([] if found is None else [found])


STRETCHED = """\
#> totals idle_ms=22 device_ms=18; steps step_ms=40 device_busy_percent=45
from torch.utils.data import DataLoader
for beats in threaded(DataLoader(data, 64)):
    train(beats)  #> cost device_ms=18 idle_ms=21.9 step_ms=39.9 launches=2000
"""


def test_launching_is_to_blame_for_no_more_than_the_captured_steps_lost() -> None:
    """A thread of the script's fetches batches, which no loader's wait tells."""
    example = read_example(STRETCHED)

    def found_at(slowdown: float) -> dict[str, float]:
        profile = replace(example.profile, steps=replace(example.profile.steps, slowdown=slowdown))
        return {
            one.rule: next(each.value for each in one.evidence if each.metric == "idle while launching")
            for one in diagnose(profile, texts(example)).findings
        }

    assert found_at(1.4) == {"launch-bound": 21.9}
    assert found_at(0.6) == {"launch-bound": pytest.approx(21.9 * 6 / 22)}
    assert found_at(0.5) == {}


def test_a_quick_step_on_a_shared_device_says_what_launching_takes() -> None:
    """It takes as long in each step; what other steps lost beyond that, other processes took."""
    example = read_example(STRETCHED)

    def found_among(others: int, *timed_ms: float) -> list[float]:
        profile = replace(
            example.profile,
            facts=replace(example.profile.facts, nvml=Nvml(other_processes=others)),
            manifest=replace(
                example.profile.manifest, timed_ns=tuple(int(one * 1_000_000) for one in timed_ms)
            ),
        )
        return [
            next(each.value for each in one.evidence if each.metric == "idle while launching")
            for one in diagnose(profile, texts(example)).findings
        ]

    assert found_among(0, 18.1, 40, 61.9) == [21.9]
    assert found_among(3, 40, 40, 40) == [21.9]
    assert found_among(3, 29, 40, 51) == [pytest.approx(21.9 / 2)]
    assert found_among(3, 18.1, 40, 61.9) == []


RESTARTS = """\
from torch.utils.data import DataLoader
#> totals device_ms={device}; device kind={kind}
loader = DataLoader(letters, 256, num_workers=2)
#^ site loader num_workers=2 persistent_workers=false batches_per_epoch=4 epochs_started=9 starts_timed=5
#^ also start_ms=24 wait_ms=6 after_first_ms={first} after_others_ms=20
for letter in loader:  #> cost cpu_ms=6 idle_ms=6 loader_ms=6 step_ms=6; use loader
    train(letter)  #> cost cpu_ms=24 device_ms=24 step_ms=24
"""


@pytest.mark.parametrize(
    ("first", "kind", "device", "gone"),
    [
        (36, "cpu", 24, 6 + 16 / 4),
        (20.2, "cpu", 24, 6),  # within what does not matter
        (12, "cpu", 24, 6),
        (36, "cuda", 12, 6 + 16 / 4),
        (36, "cuda", 30, 6 + 6 / 4),  # the device works meanwhile
        (36, "cuda", 40, 6),
    ],
)
def test_first_steps_after_restarts_are_slower(first: float, kind: str, device: float, gone: float) -> None:
    example = read_example(RESTARTS.format(first=first, kind=kind, device=device))
    (draft,) = LoaderWorkersRestart().find(Context(example.profile, texts(example)))
    assert draft.cost_ms == pytest.approx(gone)
    assert ("The first step after a restart" in draft.message) == (gone > 6)
