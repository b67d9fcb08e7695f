"""The report of a real run, key by key and type by type, as contract.md (format 1) has it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT, ExampleRun, warpline
from warpline import devices

NUMBER = (int, float)
TEXT = str
PHASES = {"forward", "backward", "recompute"}


class OneOf:
    def __init__(self, *values: str | None) -> None:
        self.values = values


class Maybe:
    """Null, or of this shape."""

    def __init__(self, shape: Any) -> None:
        self.shape = shape


PARTS = ("loader", "host", "forward", "backward", "optimizer", "communication", "idle")
PLACE = [NUMBER, NUMBER]
MAYBE_MS = ("pass_device_ms", "pass_idle_ms", "pass_host_ms")
PASSES: dict[str, Any] = {"count": NUMBER, "step_ms": NUMBER, "pass_ms": NUMBER}
PASSES |= {name: Maybe(NUMBER) for name in MAYBE_MS}
RESOURCES = ("loader", "host", "launches", "memory", "compute", "communication")
SHAPE: dict[str, Any] = {
    "format": int,
    "script": TEXT,
    "argv": [TEXT],
    "environment": {
        "python": TEXT,
        "torch": TEXT,
        "device": {"kind": OneOf(*devices.kinds()), "name": TEXT, "count": int},
    },
    "steps": {
        "captured": int,
        "step_ms": NUMBER,
        "profiled_step_ms": NUMBER,
        "slowdown": NUMBER,
        "device_busy_percent": NUMBER,
        "source": TEXT,
        "loop": str,
    },
    "composition": Maybe({f"{name}_ms": NUMBER for name in PARTS}),
    "lines": [
        {
            "file": TEXT,
            "line": int,
            "function": TEXT,
            "step_ms": NUMBER,
            "device_ms": NUMBER,
            "forward_ms": NUMBER,
            "backward_ms": NUMBER,
            "recompute_ms": NUMBER,
            "idle_ms": NUMBER,
            "cpu_ms": NUMBER,
            "sync_ms": NUMBER,
            "calls": NUMBER,
            "launches": NUMBER,
            "memory_bytes": int,
            "kept_bytes": NUMBER,
            "allocator_calls": NUMBER,
            "allocator_ms": NUMBER,
            "kernels": [{"name": TEXT, "phase": OneOf(*PHASES), "count": NUMBER, "device_ms": NUMBER}],
            "ops": [
                {
                    "name": TEXT,
                    "phase": OneOf(*PHASES),
                    "count": NUMBER,
                    "device_ms": NUMBER,
                    "shapes": [[int]],
                }
            ],
            "inside": [
                {
                    "module": Maybe(TEXT),
                    "file": TEXT,
                    "line": int,
                    "function": TEXT,
                    "step_ms": NUMBER,
                    "device_ms": NUMBER,
                    "calls": NUMBER,
                    "part": TEXT,
                    "prefill_ms": NUMBER,
                    "decode_ms": NUMBER,
                    "prefill_device_ms": NUMBER,
                    "decode_device_ms": NUMBER,
                }
            ],
            "tokens": Maybe({"prefill": PASSES, "decode": PASSES, "other_ms": NUMBER, "outside_ms": NUMBER}),
            "roofline": Maybe(
                {
                    "flops": NUMBER,
                    "bytes": NUMBER,
                    "percent_of_peak": NUMBER,
                    "bound": OneOf("compute", "memory", "launch"),
                }
            ),
        }
    ],
    "functions": [{"file": TEXT, "function": TEXT, "step_ms": NUMBER, "total_ms": NUMBER}],
    "unattributed": {"device_ms": NUMBER, "step_ms": NUMBER},
    "attributed": {"device_percent": NUMBER, "step_percent": NUMBER},
    "findings": [
        {
            "id": TEXT,
            "rule": TEXT,
            "severity": OneOf("error", "warning", "information", "hint"),
            "file": TEXT,
            "line": int,
            "cause": {"file": TEXT, "line": int},
            "also": [{"file": TEXT, "line": int}],
            "message": TEXT,
            "evidence": [{"metric": TEXT, "value": NUMBER, "unit": TEXT}],
            "predicted": Maybe(
                {
                    "step_ms": NUMBER,
                    "speedup": NUMBER,
                    "low": NUMBER,
                    "high": NUMBER,
                    "basis": OneOf("probed", "simulated", "bound", "estimate"),
                }
            ),
            "measured": Maybe(
                {
                    "speedup": NUMBER,
                    "low": NUMBER,
                    "high": NUMBER,
                    "loss_drift": Maybe(NUMBER),
                    "memory_ratio": Maybe(NUMBER),
                }
            ),
            "fixes": [
                {
                    "title": TEXT,
                    "applicability": OneOf("safe", "unsafe", "display"),
                    "edits": [{"file": TEXT, "start": [int], "end": [int], "text": TEXT}],
                }
            ],
        }
    ],
    "notes": [TEXT],
    "plan": Maybe(
        {
            "step_ms": NUMBER,
            "limit": OneOf(*RESOURCES),
            "steps": [
                {
                    "finding": TEXT,
                    "rule": TEXT,
                    "file": TEXT,
                    "line": int,
                    "title": TEXT,
                    "step_ms": NUMBER,
                    "speedup": NUMBER,
                    "limit": OneOf(*RESOURCES),
                }
            ],
            "floor_ms": NUMBER,
        }
    ),
    "workers": Maybe(
        {
            "batches": int,
            "batch_ms": NUMBER,
            "lines": [
                {
                    "file": TEXT,
                    "line": int,
                    "function": TEXT,
                    "batch_ms": NUMBER,
                    "calls": NUMBER,
                    "text": TEXT,
                }
            ],
            "queued_ms": NUMBER,
            "busy": Maybe(NUMBER),
        }
    ),
}


def check(value: Any, shape: Any, where: str = "report") -> None:
    """Exactly these keys, each of its type; bool is no number."""
    if isinstance(shape, Maybe):
        if value is not None:
            check(value, shape.shape, where)
    elif isinstance(shape, OneOf):
        assert value in shape.values, f"{where}: {value!r}"
    elif isinstance(shape, dict):
        assert isinstance(value, dict), where
        assert set(value) == set(shape), where
        for key, inner in shape.items():
            check(value[key], inner, f"{where}.{key}")
    elif isinstance(shape, list):
        assert isinstance(value, list), where
        for index, item in enumerate(value):
            check(item, shape[0], f"{where}[{index}]")
    else:
        assert isinstance(value, shape), f"{where}: {value!r}"
        assert not isinstance(value, bool), where


def keys(shape: Any) -> set[str]:
    if isinstance(shape, Maybe):
        return keys(shape.shape)
    if isinstance(shape, list):
        return keys(shape[0])
    if isinstance(shape, dict):
        return set(shape).union(*map(keys, shape.values()))
    return set()


def test_the_page_names_every_key_and_no_other() -> None:
    page = (ROOT / "docs/contract.md").read_text(encoding="utf-8")
    block = page.split("```")[1]
    described = set(re.findall(r'"(\w+)"(?=[:,}])', block.replace('"…"', "")))
    values = {"cuda", "cpu", "compute", "memory", "launch", "simulated", "bound", "estimate", "1", "probed"}
    assert keys(SHAPE) <= described | {"count", "phase", "device_ms", "name"}
    assert described - keys(SHAPE) - values - PHASES <= {"error", "warning", "information", "hint"} | {
        *("safe", "unsafe", "display")
    }


@pytest.fixture(scope="module")
def document(example_run: ExampleRun) -> dict[str, Any]:
    shown = warpline("show", "--json", "-", cwd=example_run.folder)
    assert shown.returncode == 0, shown.stderr
    assert shown.stderr == ""
    found: dict[str, Any] = json.loads(shown.stdout)  # and nothing else is printed there
    return found


def test_every_key_and_type(document: dict[str, Any]) -> None:
    check(document, SHAPE)
    assert document["format"] == 1


def test_paths_are_absolute_and_lines_start_at_one(document: dict[str, Any], example_run: ExampleRun) -> None:
    places = [*document["lines"], *document["findings"], *(f["cause"] for f in document["findings"])]
    assert places
    assert all(Path(place["file"]).is_absolute() and place["line"] >= 1 for place in places)
    assert document["script"] == str(example_run.script)


def test_lines_and_unattributed_make_the_step(document: dict[str, Any]) -> None:
    step = document["steps"]["step_ms"]
    total = sum(line["step_ms"] for line in document["lines"]) + document["unattributed"]["step_ms"]
    assert total == pytest.approx(step, rel=0.01)
    attributed = sum(line["step_ms"] for line in document["lines"]) / step * 100
    assert document["attributed"]["step_percent"] == pytest.approx(attributed, abs=1)


def test_the_parts_of_the_step_add_up_to_it(document: dict[str, Any]) -> None:
    parts = document["composition"]
    assert sum(parts.values()) == pytest.approx(document["steps"]["step_ms"], rel=1e-9)
    assert all(part >= 0 for part in parts.values())
    assert parts["forward_ms"] > 0
    assert parts["backward_ms"] > 0
    assert parts["optimizer_ms"] > 0


def test_functions_have_their_lines_and_what_they_call(document: dict[str, Any]) -> None:
    functions = {(one["file"], one["function"]): one for one in document["functions"]}
    assert len(functions) == len(document["functions"]) > 0
    for place, one in functions.items():
        lines = (line for line in document["lines"] if (line["file"], line["function"]) == place)
        assert one["step_ms"] == pytest.approx(sum(line["step_ms"] for line in lines), abs=1e-3)
        assert one["step_ms"] <= one["total_ms"] * (1 + 1e-9)
        assert one["total_ms"] <= document["steps"]["step_ms"] * (1 + 1e-9)
    assert any(one["total_ms"] > 1.01 * one["step_ms"] for one in functions.values())


def test_device_time_is_its_phases(document: dict[str, Any]) -> None:
    for line in document["lines"]:
        phases = line["forward_ms"] + line["backward_ms"] + line["recompute_ms"]
        assert line["device_ms"] == pytest.approx(phases, abs=1e-6)


def test_the_slowdown_is_the_ratio_of_the_two_windows(document: dict[str, Any]) -> None:
    steps = document["steps"]
    assert steps["slowdown"] == pytest.approx(steps["profiled_step_ms"] / steps["step_ms"], rel=1e-3)
    assert steps["captured"] == 5
    assert 0 < steps["device_busy_percent"] <= 100


def test_the_loader_the_model_and_the_optimizer_have_their_lines(
    document: dict[str, Any], example_run: ExampleRun
) -> None:
    written = example_run.script.read_text().splitlines()
    costs = {written[line["line"] - 1].strip(): line for line in document["lines"]}
    assert "aten::addmm" in {op["name"] for op in costs["return self.head(h)"]["ops"]}
    assert "aten::pow" in {
        op["name"] for op in costs["variance = ((x - mean) ** 2).mean(-1, keepdim=True)"]["ops"]
    }
    assert costs["h = torch.relu(self.second(h))"]["backward_ms"] > 0
    assert costs["optimizer.step()"]["step_ms"] > 0
    assert "for waves, kinds in loader:" in costs
    assert (
        costs["points = [math.sin(phase + i * 0.1 * (kind + 1)) for i in range(self.length)]"]["idle_ms"] > 0
    )
