"""Which key's beat is the step's."""

from __future__ import annotations

from warpline.capture.runner.steps.beat import Cycle
from warpline.capture.runner.steps.numbers import FORGOTTEN, Numbers


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


class Model:
    def __init__(self) -> None:
        self.itself = self  # only a collection frees it


def test_an_object_made_again_in_each_step_has_one_number() -> None:
    numbers, kept = Numbers(), set()
    for _ in range(9):
        kept.add(numbers.of(type("Local", (), {})()))  # even its class is made again
    assert len(kept) == 1 and numbers.left


def test_so_have_those_that_are_not_freed_at_once() -> None:
    numbers, heard = Numbers(), []
    models = [Model() for _ in range(3 * FORGOTTEN)]
    for model in models:
        heard += [numbers.of(model), numbers.of(model)]  # twice in a step
    assert len(set(heard[2 * FORGOTTEN :])) == 1 and numbers.left


def test_layers_that_are_called_in_turn_have_their_own() -> None:
    numbers, layers = Numbers(), [Model() for _ in range(3 * FORGOTTEN)]
    for _ in range(2):
        heard = [numbers.of(layer) for layer in layers]
    assert len(set(heard)) == len(layers)
