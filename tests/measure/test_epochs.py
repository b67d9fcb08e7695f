"""What the beginnings of epochs add to a step."""

from __future__ import annotations

import math

import pytest

from tests import samples
from warpline.measure.candidate import Candidate
from warpline.measure.epochs import apart, part
from warpline.measure.pairs import Pairs
from warpline.measure.timed import epoch_note, mean, sliced, window_steps
from warpline.model.report import Steps
from warpline.wire.run import Facts, Site
from warpline.wire.timing import Timing

MS = 1_000_000
#: Ten batches an epoch, whose first step takes 100 ms longer.
EPOCHS = Timing(
    tuple(110 * MS if at % 10 == 0 else 10 * MS for at in range(60)),
    epochs=tuple((at, 10) for at in range(0, 60, 10)),
)


def test_a_window_without_slices_is_its_mean() -> None:
    assert mean(EPOCHS).step_ms == pytest.approx(20.0)


def test_slices_hold_usual_steps_and_the_step_what_epochs_add() -> None:
    found = sliced(EPOCHS, 6)
    assert set(found.slices) == {10.0}
    assert found.epoch_ms == pytest.approx(10.0)
    assert found.step_ms == pytest.approx(20.0)


def test_one_beginning_of_a_long_epoch_counts_for_the_whole_of_it() -> None:
    long = Timing((1010 * MS, *[10 * MS] * 49), epochs=((0, 1000),))
    assert mean(long).step_ms == pytest.approx(11.0)


def test_a_short_loader_that_began_once_is_no_epoch_of_the_steps() -> None:
    validation = Timing((510 * MS, *[10 * MS] * 49), epochs=((0, 5),))
    assert mean(validation).step_ms == pytest.approx(20.0)


def test_nothing_but_beginnings_are_steps_like_others() -> None:
    every = Timing((10 * MS,) * 8, epochs=tuple((at, 100) for at in range(8)))
    assert apart(every) == (every, 0.0)


def test_epochs_go_along_with_their_steps() -> None:
    assert part(EPOCHS, 15, 35).epochs == ((5, 10), (15, 10))


def test_a_gain_at_the_beginning_of_epochs_is_seen() -> None:
    quick = Timing((10 * MS,) * 60, epochs=EPOCHS.epochs)
    pairs = Pairs(Candidate(("f",), "workers stay"))
    pairs.add(sliced(EPOCHS, 6), sliced(quick, 6), 0.0)
    assert math.exp(pairs.log_ratios()[0]) == pytest.approx(2.0)


def test_what_only_one_of_them_saw_is_not_compared() -> None:
    pairs = Pairs(Candidate(("f",), "a fix"))
    pairs.add(sliced(EPOCHS, 6), sliced(Timing((10 * MS,) * 60), 6), 0.0)
    assert math.exp(pairs.log_ratios()[0]) == pytest.approx(1.0)


def test_short_epochs_fit_into_a_window_twice() -> None:
    assert window_steps(10 * MS, 200) * 1.5 >= 2 * 200
    assert window_steps(10 * MS, 100_000) == window_steps(10 * MS)


@pytest.mark.parametrize(("batches", "said"), [(300, False), (1000, True), (100_000, False)])
def test_a_note_says_that_a_window_is_shorter_than_an_epoch(batches: int, said: bool) -> None:
    loader = Site("loader", "/train.py", 3, "", {"batches_per_epoch": batches, "epochs_started": 2})
    steps = Steps(5, 10.0, 10.0, 1.0, 0.0)
    assert bool(epoch_note(samples.profile(facts=Facts(sites=(loader,)), steps=steps))) is said
