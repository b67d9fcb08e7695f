"""What the survey of one step sees: calls that wait, and where what is copied was made. Tensors of the
``meta`` device stand for the device's: they are made and moved as those are, and hold nothing."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from warpline.capture.runner.observers import Observers
from warpline.capture.runner.patches import Patches
from warpline.capture.runner.waits.reads import watch_synchronize, what_waits
from warpline.capture.runner.waits.survey import Survey
from warpline.capture.runner.windows.surveying import Survey as SurveyStage
from warpline.wire.dataflow import Dataflow
from warpline.wire.run import Site
from warpline.wire.sites import HostTensor, Move, Sync, facts_of

X, MASK = torch.empty(4, 4, device="meta"), torch.empty(4, 4, device="meta", dtype=torch.bool)
COUNT = torch.empty((), device="meta", dtype=torch.int64)


class Places:
    """The runner's sites, of which the survey needs two things; only this file is the user's."""

    def __init__(self) -> None:
        self.user_files = _Files()

    def place(self, frame: Any) -> tuple[str, int, str] | None:
        while frame is not None and frame.f_code.co_filename != __file__:
            frame = frame.f_back
        return None if frame is None else (__file__, frame.f_lineno, frame.f_code.co_name)


class _Files(dict):  # type: ignore[type-arg]
    def __missing__(self, name: str) -> str | None:
        return __file__ if name == __file__ else None


def surveyed(step: Callable[[], Any]) -> list[Site]:
    survey = Survey(torch, Places())  # type: ignore[arg-type]
    survey.start()
    try:
        step()
    finally:
        survey.stop()
    assert survey.flags["surveyed_ms"] > 0
    return [
        Site(**{**one, "uses": tuple(map(tuple, one["uses"]))})
        for one in survey.found()  # type: ignore[arg-type]
    ]


@pytest.mark.parametrize(
    ("name", "arguments", "named", "what"),
    [
        ("item", (X,), {}, "item"),
        ("__bool__", (X,), {}, "bool"),
        ("nonzero", (X,), {}, "nonzero"),
        ("where", (MASK,), {}, "nonzero"),
        ("where", (MASK, X, 0.0), {}, None),
        ("__getitem__", (X, MASK), {}, "mask"),
        ("__getitem__", (X, (slice(None), MASK[0])), {}, "mask"),
        ("__getitem__", (X, (0, slice(2))), {}, None),
        ("__setitem__", (X, MASK, 0.0), {}, None),
        ("__setitem__", (X, MASK, X[0]), {}, "mask"),
        ("repeat_interleave", (X, X), {}, "repeat_interleave"),
        ("repeat_interleave", (X, X), {"output_size": 9}, None),
        ("repeat_interleave", (X, 3), {}, None),
        ("one_hot", (X,), {}, "one_hot"),
        ("one_hot", (X, 10), {}, None),
        ("copy_", (torch.ones(4, 4), X), {}, "cpu"),
        ("copy_", (torch.ones(4, 4), X), {"non_blocking": True}, None),
        ("copy_", (X, torch.ones(4, 4)), {}, None),
        ("__setitem__", (torch.ones(4, 4), 0, X[0]), {}, "cpu"),
        ("__setitem__", (torch.ones(4, 4), 0, 1.0), {}, None),
        ("__getitem__", (X, slice(None, COUNT)), {}, "item"),
        ("__getitem__", (X, (slice(None), COUNT)), {}, "item"),
        ("__getitem__", (X, MASK[0].int()), {}, None),
        ("zeros", (COUNT, 4), {}, "item"),
        ("full", ((2,), COUNT), {}, "item"),
        ("view", (X, (2, COUNT)), {}, "item"),
        ("expand", (COUNT, (4,)), {}, None),
        ("arange", (3,), {}, None),
        ("linalg_cholesky", (X,), {}, "linalg"),
        ("tensor", ([X[0, 0], X[0, 1]],), {}, "item"),
        ("tensor", ([[1.0, 2.0]],), {}, None),
        ("as_tensor", (X,), {}, None),
        ("item", (torch.ones(1),), {}, None),
        ("add", (X, X), {}, None),
        ("rand", (3,), {}, None),
    ],
)
def test_what_makes_the_host_wait(
    name: str, arguments: tuple[Any, ...], named: dict[str, Any], what: str | None
) -> None:
    assert what_waits(torch, name, arguments, named) == what


def test_a_value_that_is_read_is_a_wait_at_its_line() -> None:
    sites = surveyed(lambda: [_read(X) for _ in range(3)])
    (site,) = [one for one in sites if one.kind == "sync"]
    told = facts_of(Sync, site)
    assert (told.what, told.calls, told.direct) == ("print", 3, True)
    assert told.wait_ms is not None and told.wait_ms > 0
    assert (site.line, site.function) == (_read.__code__.co_firstlineno + 1, "_read")


def _read(tensor: torch.Tensor) -> str:
    return f"loss {tensor!r}"


def test_synchronize_is_timed_and_put_back() -> None:
    calls: list[tuple[str, int, int]] = []
    fake = SimpleNamespace(
        cuda=SimpleNamespace(synchronize=lambda: sum(range(1000)), Event=object, Stream=object)
    )
    plain, patches = fake.cuda.synchronize, Patches()
    watch_synchronize(
        fake,
        patches,
        lambda what, frame, took: calls.append((what, frame.f_lineno, took)),  # type: ignore[arg-type]
    )
    line = sys._getframe().f_lineno + 1
    assert fake.cuda.synchronize() == 499_500
    patches.restore()
    assert fake.cuda.synchronize is plain and len(calls) == 1
    assert calls[0][:2] == ("synchronize", line) and calls[0][2] > 0


def _distances(count: int) -> torch.Tensor:
    steps = torch.arange(count)
    gap = steps[None, :] - steps[:, None]
    bias = torch.where(gap > 0, float("-inf"), gap * 0.02)
    return bias.to("meta")


def _noise(like: torch.Tensor) -> torch.Tensor:
    noise = torch.randn(like.size())
    return noise.to(device="meta")


def _masked() -> torch.Tensor:
    hidden = np.random.rand(4) < 0.5
    return torch.from_numpy(hidden).to("meta")


def _shifted(data: torch.Tensor) -> torch.Tensor:
    return (data + torch.randn(4)).to("meta")


def _lengths() -> torch.Tensor:
    seen = torch.zeros(4, 6)
    for row, end in enumerate((2, 3, 4, 5)):
        seen[row][:end] = 1
    return seen.to("meta")


def _filled_up(data: torch.Tensor) -> torch.Tensor:
    rows = torch.zeros(4, 6)
    for at, row in enumerate(data):
        rows[at, : len(row)] = row
    return rows.to("meta")


def made(step: Callable[[], Any]) -> list[tuple[str | None, int, list[int]]]:
    first = step.__code__.co_firstlineno
    return [
        (facts_of(HostTensor, site).op, site.line - first, [line - first for _, line in site.uses])
        for site in surveyed(lambda: step() if step.__code__.co_argcount == 0 else step(*ARGUMENTS[step]))
        if site.kind == "tensor"
    ]


ARGUMENTS = {_distances: (4,), _noise: (X,), _shifted: (torch.ones(4),), _filled_up: (torch.ones(4, 3),)}


def test_a_tensor_is_followed_from_its_making_to_its_copy() -> None:
    assert made(_distances) == [("arange", 1, [2, 3, 4])]
    assert made(_noise) == [("randn", 1, [2])]
    assert made(_masked) == [("from_numpy", 2, [])]
    assert made(_lengths) == [("zeros", 1, [3, 4])]


def test_what_is_computed_of_data_is_no_tensor_of_the_step() -> None:
    assert made(_shifted) == []
    assert made(_filled_up) == []


def test_what_a_loader_puts_together_is_data() -> None:
    class Rows(torch.utils.data.Dataset[torch.Tensor]):
        def __len__(self) -> int:
            return 4

        def __getitem__(self, index: int) -> torch.Tensor:
            return torch.randn(3)

    loader = torch.utils.data.DataLoader(Rows(), 2)
    sites = surveyed(lambda: [batch.to("meta") for batch in loader])
    assert {site.kind for site in sites} == {"to"}


def test_a_copy_of_a_part_says_what_it_is_a_part_of() -> None:
    one, other = torch.ones(100, 4), torch.ones(50, 4)
    sites = surveyed(lambda: [rows[2:4].to("meta") for rows in (one, one, other)])
    (move,) = [facts_of(Move, site) for site in sites if site.kind == "to"]
    assert (move.bytes, move.whole_bytes) == (3 * 2 * 4 * 4, (100 + 50) * 4 * 4)
    assert move.resident_bytes is not None and move.resident_bytes > 1e6
    assert move.free_bytes is None or move.free_bytes > 0


def test_a_copy_that_waits_is_timed() -> None:
    rows = torch.ones(4)
    sites = surveyed(lambda: [rows.to("meta"), rows.to("meta", non_blocking=True)])
    assert [site.kind for site in sites] == ["to"]
    assert sites[0].facts["calls"] == 2
    assert 0 < sites[0].facts["wait_ms"] < 100
    (unwaited,) = surveyed(lambda: rows.to("meta", non_blocking=True))
    assert "wait_ms" not in unwaited.facts


@pytest.mark.parametrize(
    ("initialized", "steps"),
    [
        (True, ["survey", "stop", "operators", "stop", "operators again", "compared", "capture"]),
        (False, ["survey and operators", "stop", "operators again", "compared", "capture"]),
    ],
)
def test_with_a_device_waits_have_a_step_in_which_operators_are_not_recorded(
    initialized: bool, steps: list[str]
) -> None:
    told: list[str] = []

    def start(operators: bool) -> bool:
        told.append("survey and operators" if operators else "survey")
        return True

    session: Any = SimpleNamespace(
        boundaries=0,
        torch=SimpleNamespace(
            cuda=SimpleNamespace(is_initialized=lambda: initialized), version=SimpleNamespace(hip=None)
        ),
        classes=SimpleNamespace(is_other=lambda taken: False),
        observers=SimpleNamespace(
            start_survey=start,
            start_dataflow=lambda: told.append("operators"),
            stop_survey=lambda **_: told.append("stop"),
            record_again=lambda: told.append("operators again") or True,
            compare=lambda whole: told.append("compared"),
            signals=SimpleNamespace(take=lambda: None),
        ),
        go=lambda stage: told.append("capture"),
    )
    stage = SurveyStage(session)
    stage.begin()
    while "capture" not in told:
        stage.tick()
    assert told == steps


@pytest.mark.parametrize(
    "call",
    [
        lambda: torch.nn.functional.softmax(torch.ones(2, 2)),
        lambda: torch.nn.functional.sigmoid(torch.ones(2)) + torch.nn.functional.softmin(torch.ones(2, 2)),
        lambda: torch.nn.functional.log_softmax(torch.ones(2, 2)),
    ],
    ids=["softmax", "softmin", "log_softmax"],
)
def test_a_warning_names_the_line_that_it_would_name_without_us(
    call: Callable[[], Any],
) -> None:
    """torch warns of its caller, which is the survey while it runs; and no line is warned of twice."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("default")
        globals().get("__warningregistry__", {}).clear()
        surveyed(call)
        call()
        surveyed(call)
    shown = [(one.filename, one.lineno) for one in found if "Implicit dimension" in str(one.message)]
    assert shown == [(__file__, call.__code__.co_firstlineno)]


def test_a_second_recording_that_cannot_begin_leaves_the_first() -> None:
    first = Dataflow(shapes=((3,),))
    observers: Any = SimpleNamespace(
        triton=SimpleNamespace(found=list),
        cuda_graphs=SimpleNamespace(graphs=[]),
        recorded=SimpleNamespace(with_gradients=lambda flow: flow),
        recording=None,
        facts={"dataflow": first},
    )
    observers.start_dataflow = lambda: observers.facts.update(dataflow=Dataflow("it cannot be observed"))
    assert not Observers.record_again(observers)
    assert observers.facts["dataflow"] is first
