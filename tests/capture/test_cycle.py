"""Which key's beat is the step's."""

from __future__ import annotations

from warpline.capture.runner.steps.beat import FORGOTTEN, Cycle


def anchors(signals: str) -> list[str]:
    cycle, found = Cycle(), []
    for key in signals:
        cycle.heard(key)
        found.append(cycle.anchor)
    return found


def test_one_key_is_its_own_beat() -> None:
    assert anchors("aaa") == ["a", "a", "a"]


def test_of_two_in_turn_the_last_of_the_cycle() -> None:
    found = anchors("ababab")
    assert found[1:] == ["b"] * 5


def test_the_one_that_steps_least_often() -> None:
    assert anchors("aaaaab" * 3)[-1] == "b"
    assert anchors("baaaaa" * 3)[-1] == "b"


def test_a_key_that_is_heard_no_more_is_forgotten() -> None:
    assert anchors("b" + "a" * FORGOTTEN)[-1] == "b"
    assert anchors("b" + "a" * (FORGOTTEN + 2))[-1] == "a"


def test_more_optimizers_than_are_remembered_step_in_turn() -> None:
    cycle, turns = Cycle(), range(3 * FORGOTTEN)
    for key in (*turns, *turns, *turns, *turns, *turns):
        cycle.heard(key)
    found = []
    for key in (*turns, *turns):
        cycle.heard(key)
        found.append(cycle.anchor == key)
    assert found.count(True) == 2
