"""One prefill is recorded after the capture, where no captured step was one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest

from tests.capture.launching import Captured, request, write
from warpline.attribution import attribute
from warpline.capture.runner.session import Session
from warpline.capture.runner.windows import prefill
from warpline.trace import Trace, read

#: What Warpline knows of transformers: the function whose first forward reads the prompt.
PACKAGE = """\
class GenerationMixin:
    def generate(self, prompt, new):
        self(prompt)
        for _ in range(new - 1):
            self(prompt[:1])
"""
SCRIPT = """\
import torch
from torch import nn
from transformers.generation.utils import GenerationMixin

class Model(nn.Module, GenerationMixin):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(256, 256)
    def forward(self, tokens):
        return self.layer(tokens)

model = Model()
prompt = torch.randn(2048, 256)
with torch.no_grad():
    for _ in range(CALLS):
        model.generate(prompt, NEW)
"""


def generated(folder: Path, calls: int, new: int, then: str = "") -> Trace:
    packages, project = folder / "site-packages", folder / "project"
    (packages / "transformers/generation").mkdir(parents=True)
    (packages / "transformers/generation/utils.py").write_text(PACKAGE)
    for inside in ("", "generation/"):  # else an installed transformers would be imported
        (packages / "transformers" / inside / "__init__.py").touch()
    project.mkdir()
    script = write(project, SCRIPT.replace("CALLS", str(calls)).replace("NEW", str(new)) + then)
    environment = {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(packages)}
    return read(Captured(request(script, environment=environment), folder).run)


@pytest.mark.parametrize("new", [60, 20_000], ids=["timed", "calls that last longer than the windows"])
def test_a_prefill_s_work_is_recorded(tmp_path: Path, new: int) -> None:
    trace = generated(tmp_path, 100_000, new)
    facts = trace.facts
    assert (facts.prefill_ns is None) == bool(facts.prefill_steps)
    (tokens,) = (cost.tokens for cost in attribute(trace).lines if cost.tokens is not None)
    decode = sorted(trace.manifest.timed_ns)[len(trace.manifest.timed_ns) // 2]
    assert facts.prefill_device_ns is not None and facts.prefill_device_ns > 5 * decode
    assert tokens.prefill.pass_ms > 5 * tokens.decode.pass_ms > 0
    assert (tokens.prefill.pass_device_ms or 0) > 5 * (tokens.decode.pass_device_ms or 0) > 0
    assert 0.9 < tokens.prefill.count + tokens.decode.count < 1.1, "a step is a pass"


def test_a_script_that_ends_before_another_prefill_is_reported(tmp_path: Path) -> None:
    trace = generated(tmp_path, 1, 100_000)
    assert trace.facts.prefill_device_ns is None and trace.manifest.captured


def test_a_server_that_gets_no_further_request_is_reported(tmp_path: Path) -> None:
    trace = generated(tmp_path, 1, 100_000, "import time\ntime.sleep(300)\n")
    assert trace.facts.prefill_device_ns is None and trace.manifest.captured


class OnAThread:
    """A capture that is over, in a script whose steps are made by another thread than the main one."""

    def __init__(self) -> None:
        torch = pytest.importorskip("torch")
        self.session = session = MagicMock(torch=torch)
        session.guarded = lambda act, otherwise: act
        session.control.world, session.steps.chosen, session.steps.moves = 1, "forward", False
        session.samples_lines.return_value = False
        session.own_profiler.in_the_way = False
        session.observers.facts = {"prefill_steps": [1]}
        session.observers.frameworks = SimpleNamespace(
            generated_ns=[1 << 62], first_forwards=lambda stamps: []
        )
        self.stage = prefill.Prefill(session, [0, 1])

    def run(self, *acts: Callable[[], object]) -> None:
        """``acts`` on the thread that makes the steps; between them on the main one, in turn."""
        turns = threading.Barrier(2, timeout=60)

        def steps() -> None:
            for act in acts[::2]:
                act()
                turns.wait()
                turns.wait()

        thread = threading.Thread(target=steps)
        thread.start()
        for at in range(len(acts[::2])):
            turns.wait()
            for act in acts[2 * at + 1 : 2 * at + 2]:
                act()
            turns.wait()
        thread.join(60)


def test_a_prefill_that_another_thread_records_as_the_script_ends(capfd: pytest.CaptureFixture[str]) -> None:
    """torch cannot stop a recording on another thread than it was started on."""
    one = OnAThread()
    kept = []

    def begin() -> None:
        one.stage.begin()
        one.stage.tick()
        kept.append(one.stage.recording)

    def later() -> None:
        one.stage.tick()
        kept[0].stop()  # for the tests after this one

    one.run(begin, one.stage.ended, later)
    one.session.finish_capture.assert_called_once_with([0, 1])
    assert "prefill_device_ns" not in one.session.observers.facts
    printed = capfd.readouterr().err
    assert "disableProfiler" not in printed and "Leaked" not in printed


def test_a_recorded_prefill_that_no_step_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server's last request was for one token."""
    one = OnAThread()
    kept = []
    written = threading.Event()
    one.session.finish_capture.side_effect = lambda stamps: written.set()
    monkeypatch.setattr(prefill, "NO_STEP_S", 0.2)

    def begin() -> None:
        one.stage.begin()
        one.stage.tick()
        kept.append(one.stage.recording)

    def later() -> None:
        kept[0].stop()  # for the tests after this one

    one.run(begin, lambda: written.wait(30), later)
    one.session.finish_capture.assert_called_once_with([0, 1])


def test_the_script_s_own_profiler_begins_while_a_prefill_is_awaited() -> None:
    """What was captured is written, not made again."""
    one = OnAThread()
    one.stage.begin()
    one.session.stage = one.stage
    Session._disturbed(one.session)
    one.session.finish_capture.assert_called_once_with([0, 1])
    one.session.go.assert_not_called()


def test_the_script_s_own_profiler_is_in_the_way_of_a_prefill() -> None:
    torch = pytest.importorskip("torch")
    one = OnAThread()
    one.session.own_profiler.in_the_way = True
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as theirs:
        one.stage.begin()
        one.stage.tick()
        torch.zeros(1).neg_()
        one.stage.ended()
    one.session.finish_capture.assert_called_once_with([0, 1])
    assert any(event.key == "aten::neg_" for event in theirs.key_averages())
