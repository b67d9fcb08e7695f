"""Losses: what moved them, and what is only noise."""

from __future__ import annotations

import random

from warpline.measure.losses import drift

PLAIN = [2.3, 2.2, 2.15, 2.1, 2.05, 2.0, 1.98, 1.95]


def test_the_same_loss_has_no_drift() -> None:
    found = drift([PLAIN, PLAIN], [PLAIN], safe=True)
    assert found.allowed
    assert found.value == 0.0


def test_rounding_is_allowed_to_an_unsafe_fix_and_not_to_a_safe_one() -> None:
    rounded = [loss * 1.003 for loss in PLAIN]
    assert drift([PLAIN], [rounded], safe=False).allowed
    refused = drift([PLAIN], [rounded], safe=True)
    assert not refused.allowed
    assert "0.003" in refused.reason


def test_a_loss_that_no_longer_falls_is_refused() -> None:
    assert not drift([PLAIN], [[2.3] * 8], safe=False).allowed


def test_a_loss_that_is_not_finite_is_refused() -> None:
    found = drift([PLAIN], [[2.3, float("nan")]], safe=False)
    assert not found.allowed
    assert "finite" in found.reason


def test_other_augmentation_is_noise() -> None:
    draw = random.Random(5)
    noisy = [loss + draw.gauss(0, 0.15) for loss in PLAIN]
    again = [loss + draw.gauss(0, 0.15) for loss in PLAIN]
    assert drift([noisy], [again], safe=False).allowed


def test_what_no_seed_holds_is_noise() -> None:
    other = [loss * 1.03 for loss in PLAIN]
    assert drift([PLAIN, other], [[loss * 1.05 for loss in PLAIN]], safe=False).allowed
    assert not drift([PLAIN, PLAIN], [[loss * 1.05 for loss in PLAIN]], safe=False).allowed


def test_noise_never_excuses_a_loss_that_is_far_away() -> None:
    assert not drift([PLAIN], [[0.1, 9.0, 0.1, 9.0, 0.2, 9.0, 0.1, 9.0]], safe=False).allowed


def test_losses_are_compared_after_as_many_updates() -> None:
    """A batch twice as large: other samples, and the loss falls with the updates as before."""
    draw = random.Random(3)
    falling = [2.0 * 0.7**step for step in range(10)]
    larger = [loss * draw.uniform(0.97, 1.03) for loss in falling]
    assert drift([falling], [larger], safe=False).allowed
    stuck = [2.0 * 0.95**step for step in range(10)]
    assert not drift([falling], [stuck], safe=False).allowed


def test_a_loss_that_was_not_seen_is_said_to_be() -> None:
    found = drift([()], [()], safe=False)
    assert found.allowed
    assert found.value is None
    assert "not compared" in found.reason


def test_a_loss_of_joined_batches_is_the_sum_of_theirs() -> None:
    """Two of four accumulated batches in one: a script divides each loss by their number."""
    quarters = [loss / 4 for loss in PLAIN]
    halves = [(one + other) / 4 for one, other in zip(PLAIN[::2], PLAIN[1::2], strict=True)]
    assert drift([quarters], [halves], safe=False, joined=2).value == 0.0
    assert not drift([quarters], [halves], safe=False).allowed
    assert not drift([quarters], [quarters], safe=False, joined=2).allowed  # still divided by four
