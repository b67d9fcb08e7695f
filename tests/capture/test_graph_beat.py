"""Steps of a script that captures a CUDA graph. The device is a stand-in here: tests/gpu has the real one."""

from __future__ import annotations

from types import SimpleNamespace

from warpline.capture.runner.steps.beat import Steps
from warpline.capture.runner.steps.signals import Signals

GRAPH = 7
OPTIMIZER = 8


class Script:
    """A script's signals, and how many steps were counted since the last restart."""

    def __init__(self) -> None:
        self.capturing = False
        self.counted = 0
        self.steps = Steps(self.restart, SimpleNamespace(signals=Signals()), lambda: False)
        self.steps.on_step = self.step
        self.steps.torch = SimpleNamespace(
            cuda=SimpleNamespace(
                is_initialized=lambda: True, is_current_stream_capturing=lambda: self.capturing
            ),
            _C=SimpleNamespace(_current_graph_task_id=lambda: -1),
        )

    def restart(self, better: bool = False) -> bool:
        self.counted = 0
        return True

    def step(self) -> None:
        self.counted += 1

    def optimizer_steps(self, times: int) -> None:
        for _ in range(times):
            self.steps.heard("optimizer", OPTIMIZER)

    def capture(self, with_optimizer: bool) -> None:
        self.capturing = True
        self.steps.heard("forward", 1)
        if with_optimizer:
            self.optimizer_steps(1)
        self.capturing = False

    def replay(self) -> None:
        self.steps.heard("replay", GRAPH)


def test_nothing_is_a_step_while_a_graph_is_captured() -> None:
    script = Script()
    script.optimizer_steps(3)
    before = script.counted
    script.capture(with_optimizer=True)
    assert script.counted == before


def test_replays_of_a_graph_with_the_optimizer_are_the_steps() -> None:
    script = Script()
    script.optimizer_steps(3)
    script.capture(with_optimizer=True)
    for _ in range(6):
        script.replay()
    assert script.steps.chosen == "replay"
    assert script.counted >= 5


def test_replays_of_forward_and_backward_leave_the_steps_to_the_optimizer() -> None:
    script = Script()
    script.optimizer_steps(3)
    script.capture(with_optimizer=False)
    for _ in range(4):
        script.replay()
        script.optimizer_steps(1)
    assert script.steps.chosen == "optimizer"
    assert script.counted >= 6
