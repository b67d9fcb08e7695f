"""The search over sets of fixes: what it tries, what it leaves out, and that it goes on.

Step times are made up here (the sum of what each fix leaves), so that each choice is certain.
"""

from __future__ import annotations

import math
import random
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from warpline.measure.budget import Budget
from warpline.measure.candidate import Candidate
from warpline.measure.ledger import Ledger
from warpline.measure.numbers import Numbers
from warpline.measure.pairs import Pairs
from warpline.measure.proposals import Proposal
from warpline.measure.search import PROOF, Search
from warpline.measure.timed import Processes, Timed
from warpline.model.problem import Problem
from warpline.model.profile import Profile
from warpline.model.report import Attributed, Finding, SourceLine, Steps, Unattributed
from warpline.wire.run import DeviceFacts, Facts, Manifest, Request

FILE = "/train.py"


def proposal(name: str, finding: str = "") -> Proposal:
    """A fix called ``name``; of the finding of that name, if no other is given."""
    return Proposal(
        Finding(finding or name, name, "warning", FILE, 1, SourceLine(FILE, 1), "", ()), None, True
    )


@dataclass
class Bench:
    """Sets of fixes as a text that names them; predictions by name of the set."""

    predictions: dict[str, float] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)

    def candidate(self, chosen: Sequence[Proposal], tried: Numbers | None = None) -> Candidate | None:
        words = [one.finding.rule for one in chosen]
        words += [f"{name}={number.value}" for name, number in (tried or {}).items()]
        return Candidate(tuple(one.finding.id for one in chosen), "+".join(words), {FILE: " ".join(words)})

    def predicted(self, chosen: Sequence[Proposal], tried: Numbers | None = None) -> float | None:
        return self.predictions.get("+".join(one.finding.rule for one in chosen))

    def written(self, chosen: Sequence[Proposal]) -> Mapping[str, int]:
        return self.numbers if any(one.finding.rule == "loader" for one in chosen) else {}


@dataclass
class Machine:
    """10 ms in the loader and 6 ms on the device, one after the other unless there are workers."""

    timed: list[str] = field(default_factory=list)
    fails: str = "broken"
    draw: random.Random = field(default_factory=lambda: random.Random(3))

    def __call__(
        self, request: Request, overlay: Mapping[str, str], limit_s: float, cancelled: object
    ) -> Timed:
        words = overlay.get(FILE, "").split()
        self.timed.append("+".join(words))
        if self.fails in words:
            raise Problem("it was killed")
        device = 2.0 if "bf16" in words else 6.0
        workers = next(
            (int(word.split("=")[1]) for word in words if "=" in word), 2 if "loader" in words else 0
        )
        step = max(device, 10 / workers) if workers else 10 + device
        losses = (9.0, 9.0, 9.0) if "wrong" in words else (2.0, 1.9, 1.8)
        losses = (2.0, math.nan, math.nan) if "overflow" in words else losses
        return Timed(step * self.draw.uniform(1, 1.004), losses)


def profile() -> Profile:
    manifest = Manifest(
        1,
        0,
        FILE,
        (),
        "3.12",
        "2.11",
        DeviceFacts(),
        Request(),
        "optimizer",
        (16_000_000,),
        (),
        "monitoring",
        (),
    )
    steps = Steps(5, 16.0, 16.0, 1.0, 0.0)
    return Profile(manifest, Facts(), steps, (), Unattributed(0, 0), Attributed(100, 100), {FILE: "plain"})


def search(tmp_path: Path, machine: Machine, bench: Bench | None = None, **more: object) -> Search:
    ledger = Ledger(tmp_path, profile(), {FILE: "plain"}.get)
    return Search(Request(target=FILE), bench or Bench(), ledger, timer=machine, cores=8, **more)  # type: ignore[arg-type]


def test_the_best_set_is_found_and_proven(tmp_path: Path) -> None:
    machine = Machine()
    outcomes, best = search(tmp_path, machine).run([proposal("loader"), proposal("bf16")])
    assert best is not None
    assert best.candidate.fixes == ("loader", "bf16")
    assert best.measured is not None
    assert best.measured.low < 16 / 5 < best.measured.high
    assert {one.candidate.title for one in outcomes} == {"loader", "bf16", "loader+bf16"}
    assert [one.kept for one in outcomes] == [one is best for one in outcomes]


def test_what_fails_or_moves_the_loss_costs_only_itself(tmp_path: Path) -> None:
    machine = Machine()
    fixes = [proposal(name) for name in ("broken", "wrong", "overflow", "loader")]
    outcomes, best = search(tmp_path, machine).run(fixes)
    assert best is not None
    assert best.candidate.fixes == ("loader",)
    reasons = {one.candidate.title: one.reason for one in outcomes}
    assert reasons["broken"] == "it was killed"
    assert "loss changed" in reasons["wrong"]
    assert reasons["overflow"] == "the loss is no longer finite"
    assert not [word for word in machine.timed if "+" in word]


def test_two_fixes_of_one_finding_are_never_made_together(tmp_path: Path) -> None:
    machine = Machine()
    _, best = search(tmp_path, machine).run([proposal("bf16", "f"), proposal("loader", "f")])
    assert best is not None
    assert best.candidate.title == "loader"
    assert not [words for words in machine.timed if "+" in words]


def test_one_run_of_the_plain_script_serves_several_candidates(tmp_path: Path) -> None:
    machine = Machine()
    search(tmp_path, machine).run([proposal("nothing"), proposal("useless"), proposal("idle")])
    assert machine.timed[:4] == ["", "nothing", "useless", "idle"]


def test_numbers_are_searched(tmp_path: Path) -> None:
    bench = Bench(numbers={"num_workers": 2})
    _, best = search(tmp_path, Machine(), bench).run([proposal("loader"), proposal("bf16")])
    assert best is not None
    assert best.candidate.title == "loader+bf16+num_workers=6"


def test_a_set_that_the_simulation_sees_no_gain_in_is_not_tried(tmp_path: Path) -> None:
    bench = Bench(predictions={"loader": 2.0, "loader+useless": 2.0, "useless": 1.0})
    machine = Machine()
    search(tmp_path, machine, bench).run([proposal("loader"), proposal("useless")])
    assert "loader+useless" not in machine.timed


def test_a_round_that_contradicts_the_prediction_is_repeated(tmp_path: Path) -> None:
    machine = Machine()
    search(tmp_path, machine, Bench(predictions={"nothing": 1.5})).run([proposal("nothing")])
    assert machine.timed.count("nothing") == 2


def test_a_round_that_cannot_change_the_choice_is_not_repeated(tmp_path: Path) -> None:
    machine = Machine()
    bench = Bench(predictions={"nothing": 1.5, "loader": 1.6, "loader+nothing": 1.6})
    search(tmp_path, machine, bench).run([proposal("nothing"), proposal("loader")])
    assert machine.timed.count("nothing") == 1


@dataclass
class Lucky(Machine):
    """The second process of "lucky" and later ones have a long step. "loader" fails from its second one on if
    it ``breaks``."""

    breaks: bool = False

    def __call__(
        self, request: Request, overlay: Mapping[str, str], limit_s: float, cancelled: object
    ) -> Timed:
        found = super().__call__(request, overlay, limit_s, cancelled)
        if self.breaks and self.timed.count("loader") > 1:
            raise Problem("it was killed")
        if overlay.get(FILE, "") != "lucky":
            return found
        return replace(found, step_ms=2.0 if self.timed.count("lucky") == 1 else 18.0)


def test_a_proof_that_falls_behind_makes_room_for_the_next(tmp_path: Path) -> None:
    machine = Lucky()
    outcomes, best = search(tmp_path, machine).run([proposal("lucky", "f"), proposal("loader", "f")])
    assert best is not None
    assert best.candidate.title == "loader"
    assert machine.timed.count("lucky") == 2  # the trial, and one round of the proof
    reasons = {one.candidate.title: one.reason for one in outcomes}
    assert reasons["lucky"] == "the time budget ended before it was proven"


def test_what_fell_behind_has_its_rounds_where_the_next_fails(tmp_path: Path) -> None:
    machine = Lucky(breaks=True)
    _, best = search(tmp_path, machine).run([proposal("lucky", "f"), proposal("loader", "f")])
    assert best is None
    assert machine.timed.count("lucky") > 2


def test_without_a_fix_nothing_is_run(tmp_path: Path) -> None:
    machine = Machine()
    assert search(tmp_path, machine).run([]) == ([], None)
    assert machine.timed == []


def test_nothing_is_proven_where_nothing_helps(tmp_path: Path) -> None:
    outcomes, best = search(tmp_path, Machine()).run([proposal("nothing")])
    assert best is None
    assert not any(one.kept for one in outcomes)


def test_an_ended_search_goes_on_where_it_stopped(tmp_path: Path) -> None:
    cancelled, first = threading.Event(), Machine()

    def stop(done: int, total: int | None, message: str) -> None:
        if "proving" in message and done == 1:
            cancelled.set()

    with pytest.raises(Problem) as caught:
        search(tmp_path, first, on_progress=stop, cancelled=cancelled).run(
            [proposal("loader"), proposal("bf16")]
        )
    assert caught.value.status == 130
    second = Machine()
    _, best = search(tmp_path, second).run([proposal("loader"), proposal("bf16")])
    assert best is not None
    # Three trials and one round of the proof were known; so clear a gain needs two.
    assert sorted(second.timed) == ["", "loader+bf16"]
    assert best.rounds == 2
    third = Machine()
    assert search(tmp_path, third).run([proposal("loader"), proposal("bf16")])[1] is not None
    assert third.timed == []


def test_other_sources_start_anew(tmp_path: Path) -> None:
    search(tmp_path, Machine()).run([proposal("loader")])
    assert Ledger(tmp_path, profile(), {FILE: "plain"}.get).resumed > 0
    assert Ledger(tmp_path, profile(), {FILE: "edited"}.get).resumed == 0
    assert Ledger(tmp_path, profile(), {FILE: "plain"}.get, fresh=True).resumed == 0


class Clock:
    """Stands for the module ``time``: it goes on when a process is timed, by as much as that took."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@dataclass
class Costly(Machine):
    """Each process takes ten seconds, one with bf16 a minute."""

    clock: Clock = field(default_factory=Clock)

    def __call__(
        self, request: Request, overlay: Mapping[str, str], limit_s: float, cancelled: object
    ) -> Timed:
        wanted = 60.0 if "bf16" in overlay.get(FILE, "") else 10.0
        self.clock.now += min(wanted, limit_s)
        assert isinstance(cancelled, threading.Event)
        if cancelled.is_set():
            raise Problem("cancelled", 130)
        if wanted > limit_s:
            raise Problem("it took too long")
        return super().__call__(request, overlay, limit_s, cancelled)


@pytest.fixture
def costly(monkeypatch: pytest.MonkeyPatch) -> Costly:
    machine = Costly()
    for module in ("budget", "contest", "ending", "rounds", "search"):
        monkeypatch.setattr(f"warpline.measure.{module}.time", machine.clock)
    return machine


@pytest.mark.parametrize("budget_s", [0.0, 30.0, 100.0, 200.0, 1000.0])
def test_nothing_runs_beyond_the_budget(tmp_path: Path, costly: Costly, budget_s: float) -> None:
    began = costly.clock.now
    fixes = [proposal("bf16"), proposal("loader"), proposal("nothing"), proposal("useless")]
    outcomes, best = search(tmp_path, costly, budget_s=budget_s, began=began).run(fixes)
    assert costly.clock.now <= began + budget_s + 10
    if budget_s == 0.0:
        assert (outcomes, best, costly.timed) == ([], None, [])
    if budget_s >= 200.0:
        assert best is not None
        assert best.rounds >= 2


def test_what_a_round_has_shown_counts_when_the_budget_cuts_it_off(tmp_path: Path, costly: Costly) -> None:
    fixes = [proposal("loader"), proposal("useless"), proposal("nothing")]
    outcomes, best = search(tmp_path, costly, budget_s=35.0, began=costly.clock.now).run(fixes)
    assert best is None
    titles = {one.candidate.title for one in outcomes if one.measured is not None}
    assert "loader" in titles
    assert len(titles) < 3


def test_the_proof_has_its_share_of_the_budget(tmp_path: Path, costly: Costly) -> None:
    fixes = [proposal("loader"), *(proposal(f"useless-{number}") for number in range(20))]
    _, best = search(tmp_path, costly, budget_s=150.0, began=costly.clock.now).run(fixes)
    assert best is not None
    assert best.candidate.fixes == ("loader",)
    assert best.rounds >= 2


@dataclass
class Uneven(Costly):
    """The very first process takes ten seconds more. "loader" gains less in its third round, which is the
    second one of its proof."""

    def __call__(
        self, request: Request, overlay: Mapping[str, str], limit_s: float, cancelled: object
    ) -> Timed:
        if not self.timed:
            self.clock.now += 10.0
        found = super().__call__(request, overlay, limit_s, cancelled)
        slower = overlay.get(FILE) and self.timed.count("loader") == 3
        return replace(found, step_ms=found.step_ms * (1.3 if slower else 1.0))


def test_an_unproven_set_has_the_rest_of_the_budget(tmp_path: Path, costly: Costly) -> None:
    """By the first round, another one takes 30 s."""
    machine = Uneven(clock=costly.clock)
    _, best = search(tmp_path, machine, budget_s=95.0, began=costly.clock.now).run([proposal("loader")])
    assert best is not None
    assert best.rounds == 3


def test_two_rounds_that_prove_nothing_are_part_of_a_longer_proof(tmp_path: Path, costly: Costly) -> None:
    machine = Uneven(clock=costly.clock)
    _, best = search(tmp_path, machine, budget_s=1000.0, began=costly.clock.now).run([proposal("loader")])
    assert best is not None
    assert best.rounds < 8


def test_slow_steps_leave_room_for_a_proof() -> None:
    """Of five fixes, as many as fit into a third of what is left are tried first."""
    several = [Pairs(Candidate((str(number),), "a fix")) for number in range(5)]
    for slices_s, count in ((0.0, 5), (14.0, 2)):
        assert Budget(160.0, time.monotonic(), PROOF, slices_s).fitting(several, []) == count
    assert Processes(140.0).slices_s == pytest.approx(14.0)


def test_rounds_of_a_proof_that_warm_up_together_take_less_time() -> None:
    """20 s until both processes are warm, and 15 s of slices: four rounds take 140 s one after the other."""
    pairs = Pairs(Candidate(("fix",), "a fix"), seconds=15.0, plain_seconds=20.0, baseline_ms=[10.0])
    for together, budget_s in ((1, 140.0), (2, 100.0), (4, 80.0)):
        for spare_s, fits in ((36.0, True), (34.0, False)):
            budget = Budget(budget_s + spare_s, time.monotonic(), PROOF, together=together)
            budget.learn([pairs], 35.0)
            assert budget.allows([pairs], []) == fits
