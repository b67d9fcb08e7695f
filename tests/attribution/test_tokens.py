"""Generation: what a token takes, prefill and decode apart."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.kineto import KinetoRun, ns
from warpline.attribution import attribute
from warpline.trace import Trace
from warpline.wire.run import DeviceFacts

CPU = DeviceFacts("cpu", "a CPU", 1)


def generation(folder: Path, **facts: object) -> Trace:
    """Two captured steps of 1 ms; the device works 0.6 ms in the first, 0.2 ms in the second."""
    run = KinetoRun(folder, 2000, steps=2, device=CPU)
    run.line(0, 10)
    run.op("aten::mm", 100, 600)
    run.op("aten::mm", 1100, 200)
    trace = run.trace()
    timed = (3_000_000, 1_000_000, 1_000_000, 3_000_000, 1_000_000, 1_000_000)
    return replace(
        trace,
        manifest=replace(trace.manifest, step_source="forward", timed_ns=timed),
        facts=replace(trace.facts, **facts),  # type: ignore[arg-type]
    )


def said(trace: Trace) -> str:
    return next((note for note in attribute(trace).notes if "generate" in note), "")


def test_prefill_and_decode_have_their_own_times(tmp_path: Path) -> None:
    note = said(generation(tmp_path, prefill_steps=(0, 3), generate_ns=(ns(-10),)))
    decode, prefill = note.partition(": ")[2].split("; ")
    assert decode.startswith("decode 1.00 ms a token (4 timed)")
    assert prefill.startswith("prefill 3.00 ms a call of generate (2 timed)")
    # The first captured step is the prefill: it follows the call.
    assert "not captured" not in note


def test_a_kind_that_was_not_captured_has_no_device_time(tmp_path: Path) -> None:
    note = said(generation(tmp_path, prefill_steps=(0, 3), generate_ns=(ns(-100_000),)))
    assert note.endswith("prefill 3.00 ms a call of generate (2 timed), not recorded")


def test_without_generate_nothing_is_said(tmp_path: Path) -> None:
    assert said(generation(tmp_path)) == ""
    trace = generation(tmp_path, prefill_steps=(0,), generate_ns=(ns(-10),))
    assert said(replace(trace, manifest=replace(trace.manifest, step_source="optimizer"))) == ""
