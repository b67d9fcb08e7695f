"""What each kind of device can do, on both sides of the boundary. Real devices are in tests/gpu."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from warpline import devices, pipeline, runs
from warpline.capture.runner.device import kinds
from warpline.rules import rules

PROPERTIES = SimpleNamespace(name="A device", total_memory=8, major=9, minor=4, multi_processor_count=3)


def module(used: bool) -> SimpleNamespace:
    """A stand-in for ``torch.cuda`` or ``torch.xpu``."""
    return SimpleNamespace(
        is_initialized=lambda: used,
        current_device=lambda: 0,
        device_count=lambda: 2,
        get_device_properties=lambda device: PROPERTIES,
        is_bf16_supported=lambda: True,
        max_memory_allocated=lambda: 5,
        memory_allocated=lambda: 4,
        max_memory_reserved=lambda: 6,
        mem_get_info=lambda: (1, 8),
        memory_stats=lambda: {"num_alloc_retries": 2},
        synchronize=lambda: None,
    )


def torch_with(used: str, hip: str | None = None, mps_bytes: int = 0) -> Any:
    """A stand-in for torch on a machine whose script uses ``used``."""
    return SimpleNamespace(
        version=SimpleNamespace(hip=hip),
        cuda=module(used == "cuda"),
        xpu=module(used == "xpu"),
        mps=SimpleNamespace(
            current_allocated_memory=lambda: mps_bytes, driver_allocated_memory=lambda: 2 * mps_bytes
        ),
        backends=SimpleNamespace(mps=SimpleNamespace(is_available=lambda: True)),
    )


@pytest.mark.parametrize(
    ("torch", "kind"),
    [
        (torch_with("cuda"), "cuda"),
        (torch_with("cuda", hip="6.2"), "rocm"),
        (torch_with("xpu"), "xpu"),
        (torch_with("mps", mps_bytes=4), "mps"),
        (torch_with("none"), "cpu"),
    ],
)
def test_the_kind_that_the_script_uses(torch: Any, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin" if kind == "mps" else "linux")
    device = kinds.used(torch)
    facts = device.facts()
    assert (device.name, facts["kind"], device.accelerated) == (kind, kind, kind != "cpu")
    # The number that AMD's driver gives is no CUDA compute capability.
    assert facts.get("capability") == ([9, 4] if kind == "cuda" else None)
    if device.accelerated:
        assert device.allocated_bytes() == 4 and set(device.memory()) >= {"reserved_bytes"}
    assert device.torch_name == ("cuda" if kind == "rocm" else kind)


def test_an_older_torch_without_xpu_runs_on_the_processors() -> None:
    torch = torch_with("none")
    del torch.xpu
    assert kinds.used(torch).name == "cpu"


def test_both_sides_know_the_same_kinds() -> None:
    runner = Path(kinds.__file__).parent
    assert set(devices.kinds()) == {path.stem for path in runner.glob("*.py")} - {"__init__"}
    assert set(devices.kinds()) == {"cuda", "rocm", "xpu", "mps", "cpu"}
    assert devices.capabilities("a kind of tomorrow") == frozenset()


def test_rules_are_asked_where_the_device_can_what_they_need() -> None:
    asked = {
        kind: {rule.name for rule in rules() if all(devices.can(kind, one) for one in rule.needs)}
        for kind in devices.kinds()
    }
    assert asked["cuda"] == {rule.name for rule in rules()}
    assert asked["mps"] == set()
    assert asked["rocm"] == asked["xpu"] > asked["cpu"]
    assert asked["cuda"] - asked["rocm"] == {
        "fp32-matmul", "misaligned-matmul", "small-grid", "tail-wave",
        "uncoalesced-access", "untuned-convolution",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("category", "launch", "kind"),
    [
        ("cuda_runtime", "cudaLaunchKernel", "cuda"),
        ("cuda_runtime", "hipExtModuleLaunchKernel", "rocm"),
        ("xpu_runtime", "urEnqueueKernelLaunch", "xpu"),
    ],
)
def test_a_trace_made_elsewhere(tmp_path: Path, category: str, launch: str, kind: str) -> None:
    """In the shape of Kineto's traces of such devices: who launches the kernels says whose they are."""
    step = {"ph": "X", "pid": 1, "tid": 1, "ts": 0.0, "dur": 100.0}
    events = [
        {**step, "cat": "user_annotation", "name": "ProfilerStep#1"},
        {**step, "cat": "cpu_op", "name": "aten::mm", "dur": 20.0, "args": {"External id": 1}},
        {**step, "cat": category, "name": launch, "ts": 5.0, "dur": 5.0, "args": {"correlation": 7}},
        {"ph": "X", "pid": 0, "tid": 7, "ts": 20.0, "dur": 60.0, "cat": "kernel", "name": "gemm",
         "args": {"correlation": 7, "device": 0, "stream": 7}},
    ]  # fmt: skip
    trace = {
        "traceEvents": events,
        "deviceProperties": [{"name": "A device", "computeMajor": 9, "computeMinor": 4}],
    }
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(trace))
    ((run, report),) = pipeline.import_trace(path, folder=tmp_path / "runs")
    assert report.environment.device.kind == kind
    assert runs.manifest(run).device.capability == ((9, 4) if kind == "cuda" else None)
    assert report.steps.device_busy_percent == pytest.approx(60.0)
