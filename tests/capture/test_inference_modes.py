"""Steps that begin or end within inference mode: the record goes on after it, and so does the script."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.capture.launching import Captured, request, write

torch = pytest.importorskip("torch")


@pytest.fixture
def watched() -> Iterator[None]:
    from warpline.capture.runner.dataflow.inference import settle
    from warpline.capture.runner.steps.signals import Signals

    plain = torch.inference_mode.__exit__
    signals = Signals()
    signals.install(torch)
    signals.on_inference_end = settle
    yield
    signals.remove()
    assert torch.inference_mode.__exit__ is plain


def seeing() -> Any:
    from torch.utils._python_dispatch import TorchDispatchMode

    class Seeing(TorchDispatchMode):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.seen: list[str] = []

        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            self.seen.append(str(function).split(".")[1])
            return function(*args, **(kwargs or {}))

    return Seeing()


@pytest.mark.usefixtures("watched")
def test_a_mode_that_was_pushed_within_is_called_after_it() -> None:
    from torch.utils._python_dispatch import _pop_mode, _push_mode

    mode, x = seeing(), torch.ones(3)
    with torch.inference_mode():
        _push_mode(mode)
        x + 1
    x * 2
    with torch.inference_mode():
        x - 1
        _pop_mode()
        x / 2
    assert (x / 2).tolist() == [0.5] * 3
    assert mode.seen == ["add", "mul", "sub"]


@pytest.mark.usefixtures("watched")
def test_operators_run_where_a_mode_was_taken_off_within() -> None:
    from torch.utils._python_dispatch import _pop_mode, _push_mode

    mode, x = seeing(), torch.ones(3)
    _push_mode(mode)
    with torch.inference_mode():
        with torch.inference_mode():
            _pop_mode()
        assert (x + 1).tolist() == [2.0] * 3
    assert (x * 2).tolist() == [2.0] * 3
    assert not mode.seen


@pytest.mark.usefixtures("watched")
def test_the_scripts_own_modes_keep_their_order() -> None:
    from torch.utils._python_dispatch import _get_current_dispatch_mode_stack, _pop_mode, _push_mode

    lower, upper = seeing(), seeing()
    with torch.inference_mode():
        _push_mode(lower)
        _push_mode(upper)
    assert _get_current_dispatch_mode_stack() == [lower, upper]
    torch.ones(3)
    assert _pop_mode() is upper
    assert _pop_mode() is lower
    assert upper.seen == lower.seen == ["ones"]


SERVICE = """
import torch
from torch import nn

rank = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1)).eval()
rows = torch.randn(64, 8)

@torch.inference_mode()
def answer(query):
    order = (rows @ query).argsort(descending=True)
    return rank(rows[order[:4]])

for request in range(40):
    answer(torch.randn(8)).sum().item()
"""


def test_a_step_from_one_forward_to_the_next_is_recorded_whole(tmp_path: Path) -> None:
    captured = Captured(request(write(tmp_path, SERVICE)), tmp_path)
    assert captured.manifest.step_source == "forward"
    flow = captured.facts.dataflow
    names = [flow.names[index] for index in flow.name]
    assert flow.missing == ""
    assert "aten.randn.default" in names  # outside, after it
    assert any(name.startswith("aten.argsort") for name in names)  # in the next one
