"""Generation: what the passes of ``generate`` take, prefill and decode apart, adds up to the line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from tests.kineto import MAIN, KinetoRun, approx, at_line, ns
from warpline.attribution import attribute
from warpline.model.profile import LineCost, Profile
from warpline.model.report import Tokens
from warpline.trace import Trace
from warpline.wire.generation import CALL, DECODE, ENCODER, PREFILL, Generation
from warpline.wire.run import DeviceFacts

CPU = DeviceFacts("cpu", "a CPU", 1)
MODEL = "transformer.h.*"


def call(
    run: KinetoRun, start: float, prefill: float, decodes: Sequence[float], encoder: float = 0.0
) -> list[tuple[int, int, int, int]]:
    """A call of ``generate`` from line 10, and its spans: 100 us of its own work before each pass and after
    the last. Half of a pass is an operator; of its own work there is none."""
    begun, spans = start, []
    passes = [(ENCODER, encoder)] * bool(encoder) + [
        (PREFILL, prefill),
        *((DECODE, each) for each in decodes),
    ]
    run.library(start, 3)
    for kind, length in passes:
        start += 100
        run.library(start, 7, MODEL)
        run.op("aten::mm", start + length / 4, length / 2)
        spans.append((ns(start), ns(start + length), kind, MAIN))
        start += length
        run.library(start, 3, again=True)
    run.library(start + 100, 0, again=True)
    return [*spans, (ns(begun), ns(start + 100), CALL, MAIN)]


def profile(
    run: KinetoRun, spans: Sequence[tuple[int, int, int, int]], timed: Sequence[int] = (), **generation: int
) -> Profile:
    """``generation``: what was counted in the timing window."""
    script = str(run.folder / "train.py")
    run.facts["generations"] = [asdict(Generation(script, 10, "<module>", tuple(spans), **generation))]
    return attribute(_timed(run.trace(), timed))


def _timed(trace: Trace, timed_us: Sequence[int]) -> Trace:
    timed = tuple(1000 * each for each in timed_us)
    return replace(trace, manifest=replace(trace.manifest, timed_ns=timed)) if timed else trace


def tokens(profile: Profile) -> Tokens:
    found = at_line(profile, 10).tokens
    assert found is not None
    return found


def adds_up(cost: LineCost) -> None:
    found = cost.tokens
    assert found is not None
    assert found.prefill.step_ms + found.decode.step_ms + found.other_ms + found.outside_ms == approx(
        cost.step_ms
    )
    for each in (found.prefill, found.decode):
        assert each.count * each.pass_ms == approx(each.step_ms)


def test_passes_and_the_rest_of_the_call_add_up_to_the_line(tmp_path: Path) -> None:
    run = KinetoRun(tmp_path, 4000, device=CPU)
    run.line(0, 10)
    spans = call(run, 500, 1000, [200, 400])
    found = profile(run, spans)
    said = tokens(found)
    assert (said.prefill.count, said.prefill.pass_ms) == (1, approx(1.0))
    assert (said.decode.count, said.decode.pass_ms, said.decode.step_ms) == (2, approx(0.3), approx(0.6))
    assert (said.decode.pass_device_ms, said.decode.pass_idle_ms) == (approx(0.15), approx(0.15))
    assert said.decode.pass_host_ms == approx(0.3)
    assert (said.other_ms, said.outside_ms) == (approx(0.4), approx(2.0))
    adds_up(at_line(found, 10))
    (layer,) = (entry for entry in at_line(found, 10).inside if entry.module == MODEL)
    assert (layer.prefill_ms, layer.decode_ms) == (approx(1.0), approx(0.6))


def test_the_encoder_reads_the_prompt(tmp_path: Path) -> None:
    run = KinetoRun(tmp_path, 4000, device=CPU)
    run.line(0, 10)
    said = tokens(profile(run, call(run, 0, 200, [200, 200], encoder=600)))
    assert (said.prefill.count, said.prefill.pass_ms) == (1, approx(0.8))
    assert said.decode.count == 2


def test_other_numbers_of_tokens_in_the_timed_steps(tmp_path: Path) -> None:
    """Captured: 1 ms and two passes of 0.3 ms. Timed: five of these in each of two steps."""
    run = KinetoRun(tmp_path, 2000, device=CPU)
    run.line(0, 10)
    spans = call(run, 0, 1000, [300, 300])
    one = {"prefill_ns": 2_000_000, "decode_ns": 3_000_000, "calls_ns": 6_400_000}
    found = profile(run, spans, [3200, 3200], prefills=2, decodes=10, **one)
    said = tokens(found)
    assert (said.prefill.count, said.decode.count) == (1, 5)
    in_calls = at_line(found, 10).step_ms
    assert said.prefill.step_ms == approx(in_calls * 2.0 / 6.4)
    assert said.decode.pass_ms == approx(in_calls * 3.0 / 6.4 / 5)
    adds_up(at_line(found, 10))


def on_gpu(folder: Path) -> tuple[KinetoRun, list[tuple[int, int, int, int]]]:
    """A prefill whose kernel takes 1 ms and a decode of 0.2 ms, of which the host is in each 0.1 ms."""
    run = KinetoRun(folder, 2000)
    run.line(0, 10)
    run.kernel(100, 1000, launched=50)
    run.kernel(1100, 200, launched=150)
    run.call("cudaStreamSynchronize", 300, 1000)
    spans = [(PREFILL, 20, 120), (DECODE, 130, 230), (CALL, 0, 2000)]
    return run, [(ns(start), ns(end), kind, MAIN) for kind, start, end in spans]


def test_kernels_belong_to_the_pass_that_queued_them(tmp_path: Path) -> None:
    run, spans = on_gpu(tmp_path)
    found = profile(run, spans)
    said = tokens(found)
    assert (said.prefill.pass_device_ms, said.decode.pass_device_ms) == (approx(1.0), approx(0.2))
    assert said.decode.pass_host_ms == approx(0.1)
    assert said.decode.pass_ms == approx(0.2), "the host is done with it while the device still works"
    adds_up(at_line(found, 10))


def test_more_tokens_in_the_timed_steps_on_a_device(tmp_path: Path) -> None:
    run, spans = on_gpu(tmp_path)
    few, more = (
        tokens(profile(run, spans, [2000], prefills=1, decodes=decodes, prefill_ns=1, decode_ns=1))
        for decodes in (1, 3)
    )
    assert (few.decode.count, more.decode.count) == (1, 3)
    assert more.decode.step_ms / more.prefill.step_ms == approx(3 * few.decode.step_ms / few.prefill.step_ms)


def test_a_step_is_a_pass_and_no_prefill_was_captured(tmp_path: Path) -> None:
    """Of eight timed steps one begins with a prefill, which takes 3 ms longer than the others."""
    run = KinetoRun(tmp_path, 1000)
    run.line(0, 10)
    run.kernel(100, 400, launched=50)
    spans = [(ns(20), ns(520), DECODE, MAIN), (ns(-9000), ns(1000), CALL, MAIN)]
    timed = [4000, *[1000] * 7]
    trace = run.trace()
    script = str(run.folder / "train.py")
    one = Generation(script, 10, "<module>", tuple(spans), 1, 7, 2_000_000, 2_000_000, 11_000_000)
    facts = replace(trace.facts, generations=(one,), prefill_steps=(0,), prefill_device_ns=2_500_000)
    trace = replace(_timed(trace, timed), facts=facts)
    trace = replace(trace, manifest=replace(trace.manifest, step_source="forward"))
    found = attribute(trace)
    said = tokens(found)
    assert (said.prefill.count, said.decode.count) == (1 / 8, 7 / 8)
    assert said.prefill.pass_device_ms == approx(2.5)
    assert said.prefill.pass_ms == pytest.approx(3.5, rel=0.05), "and half a millisecond is not the pass's"
    adds_up(at_line(found, 10))


def test_a_line_that_calls_generate_as_a_word_has_no_tokens(tmp_path: Path) -> None:
    run = KinetoRun(tmp_path, 1000, device=CPU)
    run.line(0, 10)
    assert at_line(run.profile(), 10).tokens is None
    spans = [(ns(0), ns(900), CALL, MAIN)]
    assert at_line(profile(run, spans), 10).tokens is None, "no pass ran in it"


def test_what_the_call_runs_of_the_user_s_is_part_of_it(tmp_path: Path) -> None:
    run = KinetoRun(tmp_path, 1000, device=CPU)
    run.line(0, 10)
    run.line(200, 20, "Net.forward")
    run.op("aten::mm", 300, 200)
    run.line(600, 10, again=True)
    spans = [(ns(200), ns(600), PREFILL, MAIN), (ns(100), ns(700), CALL, MAIN)]
    found = profile(run, spans)
    said = tokens(found)
    assert said.prefill.pass_ms == approx(0.4)
    assert (said.other_ms, said.outside_ms) == (approx(0.2), approx(0.4))
    both = at_line(found, 10).step_ms + at_line(found, 20).step_ms
    assert said.prefill.step_ms + said.other_ms + said.outside_ms == approx(both)


def two_lines(folder: Path, timed: Sequence[tuple[int, int]]) -> Profile:
    """Lines 10 and 11 generate for 0.4 ms each, line 12 takes 0.2 ms. ``timed``: of both the line and ns."""
    run = KinetoRun(folder, 1000, device=CPU)
    for at, line in ((0, 10), (400, 11), (800, 12)):
        run.line(at, line)
    script = str(run.folder / "train.py")
    run.facts["generations"] = [
        asdict(
            Generation(
                script, line, "<module>",
                ((ns(at + 100), ns(at + 300), PREFILL, MAIN), (ns(at), ns(at + 400), CALL, MAIN)),
                1, 0, ns_ // 2, 0, ns_,
            )
        )
        for at, (line, ns_) in zip((0, 400), timed, strict=True)
    ]  # fmt: skip
    return attribute(_timed(run.trace(), [2000]))


def test_lines_that_generate_divide_the_step_as_their_timed_calls_do(tmp_path: Path) -> None:
    """The capture's calls took the same; in the timed step one took three times as long as the other."""
    found = two_lines(tmp_path, [(10, 1_200_000), (11, 400_000)])
    assert [at_line(found, line).step_ms for line in (10, 11, 12)] == [approx(1.2), approx(0.4), approx(0.4)]
    for line in (10, 11):
        adds_up(at_line(found, line))
    assert tokens(found).prefill.pass_ms == approx(0.6), "what its call took while steps were timed"


def test_a_line_that_does_more_than_generate_keeps_its_time(tmp_path: Path) -> None:
    run = KinetoRun(tmp_path, 1000, device=CPU)
    run.line(0, 10)
    run.line(800, 12)
    spans = [(ns(200), ns(300), PREFILL, MAIN), (ns(200), ns(400), CALL, MAIN)]
    found = profile(run, spans, [1000], prefills=1, prefill_ns=400_000, calls_ns=500_000)
    assert at_line(found, 10).step_ms == approx(0.8), "a trainer's line, for one"
    adds_up(at_line(found, 10))
