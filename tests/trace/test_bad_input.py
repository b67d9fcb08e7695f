"""Traces that are cut, broken or contradictory: one clear note each, and everything else is used."""

from __future__ import annotations

import gzip
import json
import re
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.kineto import MAIN, KinetoRun
from warpline import pipeline, trace
from warpline.model.problem import Problem
from warpline.model.report import Report
from warpline.trace import contradictions, decode, frames

STEPS = 40
STEP_US = 100
KERNEL_US = 50  # one in each step


def text(folder: Path) -> str:
    """A trace of 40 steps of 100 us, each with a kernel of 50 us that model.py(5) launches."""
    run = KinetoRun(folder, STEPS * STEP_US)
    for at in range(0, STEPS * STEP_US, STEP_US):
        run.mark(f"ProfilerStep#{at // STEP_US}", at, STEP_US)
        run.complete("python_function", "model.py(5): forward", (at, 90), (MAIN, MAIN))
        run.op("aten::linear", at + 5, 20, **{"External id": at})
        run.kernel(at + 30, KERNEL_US, launched=at + 10)
    return (run.write() / "trace.json").read_text()


def kineto(plain: str) -> str:
    """The same laid out as Kineto does it."""
    content = json.loads(plain)
    events = ",\n".join(f"  {{\n    {json.dumps(event)[1:-1]}\n  }}" for event in content.pop("traceEvents"))
    return json.dumps(content)[:-1] + ',\n  "traceEvents": [\n' + events + '\n  ], "traceName": "x"\n}'


def imported(data: bytes, folder: Path, name: str = "bad.pt.trace.json") -> Report:
    path = folder / name
    path.write_bytes(data)
    ((_, report),) = pipeline.import_trace(path, folder=folder / "runs")
    return report


def device_ms(report: Report) -> float:
    """Over all the steps."""
    return sum(line.device_ms for line in report.lines) * report.steps.captured


def half(whole: str) -> bytes:
    return whole.encode()[: len(whole) * 6 // 10]


def nan(whole: str) -> bytes:
    """The duration of one kernel is NaN, that of another one null, of a third one infinite."""
    parts = re.split(r'("dur": 50)\b', whole)
    parts[3], parts[7], parts[11] = '"dur": NaN', '"dur": null', '"dur": Infinity'
    return "".join(parts).encode()


def undecodable(whole: str) -> bytes:
    return whole.encode().replace(b'"gemm"', b'"ge\xff\xfemm"', 7).replace(b'"gemm"', b'"g\\ud800mm"', 2)


def rubbish(whole: str) -> bytes:
    """Something that is no JSON at all stands in the place of one event."""
    return re.sub(
        r'\{[^{}]*"aten::linear"[^{}]*\{[^{}]*\}\s*\}', '{"ph": "X", oops}', whole, count=1
    ).encode()


def unlinked(whole: str) -> bytes:
    """The launches of ten kernels were not recorded."""
    content = json.loads(whole)
    launches = [event for event in content["traceEvents"] if event.get("cat") == "cuda_runtime"]
    content["traceEvents"] = [event for event in content["traceEvents"] if event not in launches[:10]]
    return json.dumps(content).encode()


def twice(whole: str) -> bytes:
    """Ten launches, and their kernels, carry the number of the launch before them."""
    content = json.loads(whole)
    for event in content["traceEvents"]:
        number = event["args"].get("correlation")
        if number is not None and number % 2 == 0 and number <= 20:
            event["args"]["correlation"] = number - 1
    return json.dumps(content).encode()


def shifted(whole: str) -> bytes:
    """The device's clock is an hour behind the host's."""
    content = json.loads(whole)
    for event in content["traceEvents"]:
        if event.get("cat") == "kernel":
            event["ts"] -= 3_600_000_000
    return json.dumps(content).encode()


def long_names(whole: str) -> bytes:
    return whole.replace('"gemm"', f'"gemm<{"x" * 10_000}>"').encode()


ALL = STEPS * KERNEL_US / 1000
CASES: dict[str, tuple[Callable[[str], bytes], str, float]] = {
    "half": (half, r"is cut off", 0.5 * ALL),
    "nan": (nan, r"^3 malformed events", ALL - 3 * KERNEL_US / 1000),
    "undecodable": (undecodable, r"^9 events .* not valid UTF-8", ALL),
    "rubbish": (rubbish, r"^1 malformed event", ALL),
    "unlinked": (unlinked, r"^10 of 40 kernels .* launch", ALL - 10 * KERNEL_US / 1000),
    "twice": (twice, r"^20 launches have the same number", ALL),
    "shifted": (shifted, r"clock", ALL),
    "long names": (long_names, r"^1 name ", ALL),
}  # fmt: skip


@pytest.mark.parametrize("layout", ["kineto", "flat"])
@pytest.mark.parametrize("case", CASES)
def test_one_note_and_everything_else_is_used(
    case: str, layout: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decode, "PIECE", 3000)
    spoil, note, least_ms = CASES[case]
    whole = text(tmp_path / "made")
    usual = imported(whole.encode(), tmp_path, "good.json").notes[1:]
    report = imported(spoil(kineto(whole) if layout == "kineto" else whole), tmp_path)
    more = [one for one in report.notes[1:] if one not in usual]
    assert device_ms(report) == pytest.approx(ALL, abs=ALL - least_ms + 1e-9)
    assert device_ms(report) >= least_ms - 1e-9
    assert len(more) == 1, more
    assert re.search(note, more[0]), more
    assert all(len(one) < 300 for one in report.notes)
    assert all(
        len(kernel.name) <= contradictions.LONGEST_NAME for line in report.lines for kernel in line.kernels
    )


def _args(category: str, **values: object) -> Callable[[dict[str, Any]], None]:
    """Puts ``values`` into the first event of ``category``."""

    def spoil(content: dict[str, Any]) -> None:
        next(one for one in content["traceEvents"] if one.get("cat") == category)["args"].update(values)

    return spoil


def _all(category: str, **values: object) -> Callable[[dict[str, Any]], None]:
    def spoil(content: dict[str, Any]) -> None:
        for event in content["traceEvents"]:
            if category in ("", event.get("cat")):
                event.update(values)

    return spoil


def _whole(**values: object) -> Callable[[dict[str, Any]], None]:
    return lambda content: content.update(values)


ONE = KERNEL_US / 1000
STRANGE: dict[str, tuple[Callable[[dict[str, Any]], None], float]] = {
    "a number that fits in no column": (_args("kernel", correlation=10**30), ALL - ONE),
    "one above the largest that does": (_args("kernel", bytes=2**63), ALL - ONE),
    "time without an end": (_whole(baseTimeNanoseconds=10**40), ALL),
    "a rank that is text": (_whole(distributedInfo={"rank": "abc", "world_size": [1]}), ALL),
    "threads that are names": (_all("", tid="main thread"), ALL),
    "threads that are fractions": (_all("", tid=1.5), ALL),
    "a file whose name is too long": (_all("python_function", name="a" * 5000 + ".py(5): f"), ALL),
    "a line of 6,000 digits": (_all("python_function", name=f"a.py({'9' * 6000}): f"), 0),
}  # fmt: skip


@pytest.mark.parametrize("case", STRANGE)
def test_values_that_no_profiler_writes(case: str, tmp_path: Path) -> None:
    """The import takes what else there is, and the run can be read again."""
    spoil, least_ms = STRANGE[case]
    content = json.loads(text(tmp_path / "made"))
    spoil(content)
    report = imported(json.dumps(content).encode(), tmp_path)
    assert device_ms(report) == pytest.approx(least_ms)
    (run,) = (path for path in (tmp_path / "runs").iterdir() if path.is_dir())
    assert len(trace.read(run).kernels) >= STEPS - 1


@pytest.mark.parametrize("layout", ["object", "list"])
def test_a_byte_order_mark_is_no_damage(layout: str, tmp_path: Path) -> None:
    """As some editors put it before what they save."""
    whole = text(tmp_path / "made")
    whole = whole if layout == "object" else json.dumps(json.loads(whole)["traceEvents"])
    usual = imported(whole.encode(), tmp_path, "good.json")
    found = imported(b"\xef\xbb\xbf" + whole.encode(), tmp_path)
    assert (device_ms(found), found.notes[1:]) == (device_ms(usual), usual.notes[1:])


def test_a_trace_cannot_have_any_file_read(tmp_path: Path) -> None:
    for name in ("notes.txt", "code.py"):
        (tmp_path / name).write_text("x = 1")
    assert frames.source_of(str(tmp_path / "notes.txt")) is None
    assert frames.source_of(str(tmp_path / "code.py")) == "x = 1"
    assert frames.source_of("a" * 5000 + ".py") is None


def test_a_packed_trace_that_is_cut(tmp_path: Path) -> None:
    packed = gzip.compress(kineto(text(tmp_path / "made")).encode(), 1)
    report = imported(packed[: len(packed) * 7 // 10], tmp_path, "cut.json.gz")
    assert 0.3 * ALL < device_ms(report) < ALL
    assert any("is cut off" in note for note in report.notes)


@pytest.mark.parametrize("inside", ["a string", "events"])
def test_a_gzip_bomb(inside: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """64 MB of nothing, and as much of one event, from a few KB: memory stays bounded."""
    monkeypatch.setattr(decode, "LONGEST_EVENT", 1 << 20)
    monkeypatch.setattr(decode, "MOST_EVENTS", 4_000)
    event = b'{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1, "dur": 1},\n'
    many = 64_000_000 // len(event)
    with gzip.open(tmp_path / "bomb.json.gz", "wb", 1) as file:
        file.write(b'{"traceEvents": [')
        if inside == "events":
            for _ in range(100):
                file.write(event * (many // 100))
        else:
            file.write(b'{"name": "')
            for _ in range(64):
                file.write(bytes(1_000_000))
    tracemalloc.start()
    try:
        if inside == "events":
            ((_, report),) = pipeline.import_trace(tmp_path / "bomb.json.gz", folder=tmp_path / "runs")
            assert any("4,000" in note for note in report.notes)
        else:
            with pytest.raises(Problem) as problem:
                pipeline.import_trace(tmp_path / "bomb.json.gz", folder=tmp_path / "runs")
            assert "\n" not in str(problem.value)
        assert tracemalloc.get_traced_memory()[1] < 32_000_000
    finally:
        tracemalloc.stop()
