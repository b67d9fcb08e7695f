"""Reports of runs that were recorded on GPUs, as contract.md (format 1) has them: kernels and rooflines."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.commands.test_contract import SHAPE, check
from warpline import pipeline

#: Plain kernels, fused ones, those of a CUDA graph, and a run of two ranks.
RUNS = ("fp32-bert", "compiled", "cuda_graph", "nccl")


@cache
def made(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(msgspec.json.encode(pipeline.report_of(run)))
    return found


@pytest.fixture(params=RUNS)
def document(request: pytest.FixtureRequest, recorded: Callable[[str], Path]) -> dict[str, Any]:
    return made(recorded(request.param))


def test_every_key_and_type(document: dict[str, Any]) -> None:
    check(document, SHAPE)


def test_kernels_and_operators_add_up_to_the_device_time_of_their_line(document: dict[str, Any]) -> None:
    busy = [line for line in document["lines"] if line["kernels"]]
    assert busy
    for line in document["lines"]:
        for phase in ("forward", "backward", "recompute"):
            kernels = [use["device_ms"] for use in line["kernels"] if use["phase"] == phase]
            assert sum(kernels) == pytest.approx(line[f"{phase}_ms"], abs=1e-6)
        # A compiled graph is one operator, whose kernels are of several lines.
        if line["ops"] and not document["script"].endswith("compiled.py"):
            operators = sum(use["device_ms"] for use in line["ops"])
            assert operators == pytest.approx(line["device_ms"], abs=1e-6)
        counted = sum(use["count"] for use in line["kernels"])
        assert bool(counted) == bool(line["kernels"])


def test_lines_and_unattributed_make_the_step_and_the_device_time(document: dict[str, Any]) -> None:
    step = sum(line["step_ms"] for line in document["lines"]) + document["unattributed"]["step_ms"]
    assert step == pytest.approx(document["steps"]["step_ms"], rel=1e-6)
    device = sum(line["device_ms"] for line in document["lines"])
    whole = device + document["unattributed"]["device_ms"]
    assert document["attributed"]["device_percent"] == pytest.approx(100 * device / whole, abs=0.01)


def test_a_roofline_is_below_its_roof(recorded: Callable[[str], Path]) -> None:
    lines = [line for name in RUNS for line in made(recorded(name))["lines"] if line["roofline"]]
    assert {line["roofline"]["bound"] for line in lines} >= {"compute", "memory"}
    for line in lines:
        roofline = line["roofline"]
        assert line["device_ms"] > 0
        assert roofline["flops"] >= 0
        assert roofline["bytes"] > 0
        assert 0 < roofline["percent_of_peak"] <= 100
