"""An answer of Nsight Compute, recorded on an H200: the slow transpose of examples/transpose-kernel."""

from __future__ import annotations

import json
import lzma
from typing import Any

import pytest

from tests.conftest import ROOT
from warpline.model.kernel import KernelInside
from warpline.trace.nsight import inside

RECORDED = ROOT / "tests/captures/transpose_rows.ncu.json.xz"


class Recorded:
    """Plays ``ncu_report``'s IAction, IMetric and ISourceInfo from what they answered."""

    def __init__(self, answers: dict[str, Any]) -> None:
        self.answers = answers

    def name(self) -> str:
        return str(self.answers["name"])

    def metric_names(self) -> tuple[str, ...]:
        return tuple(self.answers["metrics"])

    def metric_by_name(self, name: str) -> Metric | None:
        found = self.answers["metrics"].get(name)
        return Metric(found["value"], found.get("by_address", {})) if found is not None else None

    def source_info(self, address: int) -> Source | None:
        found = self.answers["sources"].get(str(address))
        return Source(*found) if found is not None else None

    def rule_results_as_dicts(self) -> list[dict[str, Any]]:
        return list(self.answers["rules"])


class Metric:
    def __init__(self, value: Any, by_address: dict[str, float]) -> None:
        self.value = value
        self.by_address = by_address

    def has_correlation_ids(self) -> bool:
        return bool(self.by_address)

    def correlation_ids(self) -> Metric:
        return Metric(None, {str(at): int(address) for at, address in enumerate(self.by_address)})

    def num_instances(self) -> int:
        return len(self.by_address)

    def as_double(self, at: int | None = None) -> float:
        return float(self.value if at is None else list(self.by_address.values())[at])

    def as_uint64(self, at: int) -> int:
        return int(list(self.by_address.values())[at])

    def as_string(self) -> str:
        return str(self.value)


class Source:
    def __init__(self, file: str, line: int) -> None:
        self.place = file, line

    def file_name(self) -> str:
        return self.place[0]

    def line(self) -> int:
        return self.place[1]


@pytest.fixture(scope="module")
def kernel() -> KernelInside:
    return inside(Recorded(json.loads(lzma.decompress(RECORDED.read_bytes()))))


def test_the_store_moves_eight_times_what_it_needs_and_the_load_does_not(kernel: KernelInside) -> None:
    """A row of 4096 floats a program: each store of a warp touches 32 sectors, where 4 would hold it."""
    load, store = (line for line in kernel.lines if line.sectors)
    assert load.line + 1 == store.line
    assert load.sectors == load.ideal_sectors == store.ideal_sectors == 8192 * 4096 * 4 / 32
    assert store.sectors == 8192 * 4096
    assert store.used_percent == 12.5


def test_figures_of_the_whole_kernel(kernel: KernelInside) -> None:
    assert (kernel.name, kernel.device) == ("transpose_rows", "NVIDIA H200")
    assert 0.5 < kernel.duration_ms < 0.7
    assert kernel.compute_percent is not None
    assert kernel.memory_percent is not None
    assert kernel.compute_percent < 10 < kernel.memory_percent < 100
    assert kernel.occupancy_percent is not None
    assert 90 < kernel.occupancy_percent <= 100


def test_warps_wait_at_the_store_most(kernel: KernelInside) -> None:
    waiting = {line.line: sum(line.stalls.values()) for line in kernel.lines}
    (store,) = (line for line in kernel.lines if line.used_percent == 12.5)
    assert max(waiting, key=lambda line: waiting[line]) == store.line
    reasons = {reason for line in kernel.lines for reason in line.stalls}
    assert "mio_throttle" in reasons
    assert "selected" not in reasons, "a warp that issues does not wait"
    assert not any(reason.endswith("not_issued") for reason in reasons), "counted once"


def test_advice_comes_by_what_it_promises_and_reads_as_text(kernel: KernelInside) -> None:
    name, message = kernel.advice[0]
    assert name == "Uncoalesced Global Accesses"
    assert "29360128 excessive sectors" in message
    assert message.endswith("(estimated speedup: 78 %)")
    assert len(set(kernel.advice)) == len(kernel.advice) > 3
    assert not any("@" in message or "https:" in message for _, message in kernel.advice)
    assert not any(name == "Roofline Analysis" for name, _ in kernel.advice), "a remark that changes nothing"
