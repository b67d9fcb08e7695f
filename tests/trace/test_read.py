"""Run folders and foreign traces, read from real torch traces and from hand-made ones."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import ExampleRun
from tests.kineto import MAIN, KinetoRun, approx, at_line
from warpline import pipeline, runs, trace
from warpline.attribution import attribute
from warpline.model.problem import Problem
from warpline.trace import foreign
from warpline.trace.columns import COPY, OP, RUNTIME
from warpline.trace.events import OLD


def test_kernels_are_linked_to_their_launches(tmp_path: Path) -> None:
    run = KinetoRun(tmp_path, 100)
    run.op("aten::copy_", 1, 20)
    run.kernel(30, 10, launched=3, name="Memcpy HtoD (Pageable -> Device)", cat="gpu_memcpy", bytes=64)
    found = run.trace()
    (launch,) = found.kernels.launch.tolist()
    assert found.host.kind[launch] == RUNTIME
    assert found.names[found.host.name[found.host.parent[launch]]] == "aten::copy_"
    assert found.kernels.kind.tolist() == [COPY]
    assert found.kernels.bytes.tolist() == [64]


def test_a_real_run_is_read_whole(example_run: ExampleRun) -> None:
    """Every op of the trace is a row, with its parent around it, in the order of its thread."""
    found = trace.read(example_run.run)
    events = json.loads(gzip.decompress((example_run.run / "trace.json.gz").read_bytes()))["traceEvents"]
    ops = [event for event in events if event.get("cat") == "cpu_op"]
    assert int((found.host.kind == OP).sum()) == len(ops) > 1000
    child = np.flatnonzero(found.host.parent >= 0)
    parent = found.host.parent[child]
    assert (found.host.start_ns[parent] <= found.host.start_ns[child]).all()
    assert (found.host.end_ns[parent] >= found.host.end_ns[child]).all()
    assert found.threads[found.main] == ops[0]["pid"]
    assert {found.names[at] for at in found.host.name} == {event["name"] for event in ops}
    assert len(found.records.time_ns) > 1000
    assert found.memory.bytes.any()


@pytest.mark.parametrize(
    "part", ["facts.json", "locations.json", "sources.json", "trace.json", "manifest.json"]
)
@pytest.mark.parametrize("content", [None, b"", b"{", b"[]", b"\xff\xfe", b'{"traceEvents": 3, "sites": 3}'])
def test_a_broken_part_is_one_clear_line(tmp_path: Path, part: str, content: bytes | None) -> None:
    run = KinetoRun(tmp_path / "run", 100).write()
    (run / part).unlink()
    if content is not None:
        (run / part).write_bytes(content)
    if part == "trace.json" and content == b"[]":
        assert len(trace.read(run).host) == 0  # a Chrome trace may be a bare list of events
        return
    with pytest.raises(Problem) as problem:
        trace.read(run)
    assert "\n" not in str(problem.value)


def test_a_packed_run_reads_as_the_plain_one(recorded: Callable[[str], Path], tmp_path: Path) -> None:
    """Old runs lie plain; a packed one that was cut off is one clear line."""
    run = tmp_path / "run"
    shutil.copytree(recorded("quickstart"), run)
    (run / "lines.bin").write_bytes(b"".join([(run / "lines.bin").read_bytes()] * 300))
    plain = trace.read(run)
    large = (run / "trace.json").stat().st_size
    runs.pack(run)
    assert not (run / "trace.json").exists() and not (run / "lines.bin").exists()
    assert (run / "trace.json.gz").stat().st_size < large / 5
    packed = trace.read(run)
    assert packed.names == plain.names and (packed.host.start_ns == plain.host.start_ns).all()
    assert (packed.records.time_ns == plain.records.time_ns).all()
    runs.pack(run)  # there is nothing left to do
    assert not list(run.glob(".*"))
    for name in ("lines.bin.gz", "trace.json.gz"):
        (run / name).write_bytes((run / name).read_bytes()[:1000])
        with pytest.raises(Problem) as problem:
            trace.read(run)
        assert "\n" not in str(problem.value)


def test_a_truncated_line_file_costs_its_last_record(tmp_path: Path) -> None:
    run = KinetoRun(tmp_path, 100)
    run.line(0, 10)
    run.line(50, 11)
    folder = run.write()
    (folder / "lines.bin").write_bytes((folder / "lines.bin").read_bytes()[:-3])
    found = trace.read(folder)
    assert len(found.records.time_ns) == 1
    assert any("malformed" in note for note in found.notes)


def foreign_events(run: KinetoRun) -> None:
    """train.py(1): <module> calls model.py(5): forward, which calls into torch."""
    frames = (
        ("train.py(1): <module>", 0, 900),
        ("ProfilerStep", 0, 0),
        ("model.py(5): forward", 100, 300),
        ("torch/nn/modules/linear.py(120): forward", 110, 200),
        ("<built-in function linear>", 120, 100),
    )
    for name, start, length in frames:
        if length:
            run.complete("python_function", name, (start, length), (MAIN, MAIN), **{"Python id": 1})
    run.mark("ProfilerStep#3", 0, 500)
    run.mark("ProfilerStep#4", 500, 500)
    run.op("aten::linear", 130, 20)
    run.kernel(200, 250, launched=135)
    run.op("aten::add", 600, 20)
    run.kernel(700, 100, launched=605)


@pytest.mark.parametrize("form", ["json", "json.gz", "folder"])
def test_a_foreign_trace_with_stacks(tmp_path: Path, form: str) -> None:
    run = KinetoRun(tmp_path / "made", 1000)
    foreign_events(run)
    plain = run.write() / "trace.json"
    path = tmp_path / f"trace.{form}"
    if form == "json.gz":
        path.write_bytes(gzip.compress(plain.read_bytes()))
    elif form == "folder":
        path = tmp_path / "logs"
        path.mkdir()
        shutil.copy(plain, path / "host_123.456.pt.trace.json")
    else:
        shutil.copy(plain, path)
    profile = attribute(foreign.read(path))
    assert at_line(profile, 5).device_ms == pytest.approx(0.125)  # two steps
    assert at_line(profile, 1).device_ms == pytest.approx(0.05)
    assert at_line(profile, 5).function == "forward"
    assert profile.steps.captured == 2
    assert any("def" in note for note in profile.notes)
    assert any("without the profiler" in note for note in profile.notes)


def test_a_trace_of_rocm_names_streams_by_address(tmp_path: Path) -> None:
    run = KinetoRun(tmp_path, 100)
    run.op("aten::mm", 1, 20)
    run.kernel(30, 10, launched=3)
    path = run.write() / "trace.json"
    read = json.loads(path.read_bytes())
    (launch,) = (event for event in read["traceEvents"] if event.get("cat") == "cuda_runtime")
    launch["name"], launch["args"]["stream"] = "hipLaunchKernel", "0x0"
    path.write_text(json.dumps(read))
    found = foreign.read(path)
    assert found.kernels.launch.tolist() != [-1]
    assert not [note for note in found.notes if "malformed" in note]


def test_a_malformed_event_costs_only_itself(tmp_path: Path) -> None:
    run = KinetoRun(tmp_path, 100)
    run.op("aten::mm", 1, 20)
    run.kernel(30, 10, launched=3)
    path = run.write() / "trace.json"
    read = json.loads(path.read_bytes())
    read["traceEvents"].append({"ph": "X", "cat": "cpu_op", "name": "aten::add", "ts": "soon"})
    read["distributedInfo"] = {"rank": 3, "world_size": 8}
    path.write_text(json.dumps(read))
    found = foreign.read(path)
    assert "1 malformed event of the trace was left out" in found.notes
    assert (len(found.kernels), found.manifest.rank, found.manifest.world_size) == (1, 3, 8)


def test_a_foreign_trace_without_stacks_says_so(tmp_path: Path) -> None:
    run = KinetoRun(tmp_path, 1000)
    run.op("aten::linear", 130, 20)
    run.kernel(200, 250, launched=135)
    profile = attribute(foreign.read(run.write() / "trace.json"))
    assert profile.lines == ()
    assert profile.unattributed.device_ms == pytest.approx(0.25)
    assert any("with_stack" in note for note in profile.notes)


def test_a_foreign_trace_with_call_stacks(tmp_path: Path) -> None:
    run = KinetoRun(tmp_path, 1000)
    stack = "torch/nn/functional.py(9): linear;model.py(5): forward;train.py(1): <module>"
    run.op("aten::linear", 130, 20, **{"Call stack": stack})
    run.kernel(200, 250, launched=135)
    profile = attribute(foreign.read(run.write() / "trace.json"))
    assert at_line(profile, 5).device_ms == pytest.approx(0.25)


def test_an_imported_trace_is_a_run_like_any_other(tmp_path: Path) -> None:
    run = KinetoRun(tmp_path / "made", 1000)
    foreign_events(run)
    path = run.write() / "trace.json"
    ((folder, report),) = pipeline.import_trace(path, folder=tmp_path / "runs")
    assert pipeline.report_of(folder) == report
    again = attribute(trace.read(folder))
    assert at_line(again, 5).device_ms == pytest.approx(0.125)
    for name in ("report.json", "profile.json"):  # made anew of what lies in the folder: the same
        (folder / name).unlink()
    assert pipeline.report_of(folder) == report


def test_one_trace_that_cannot_be_read_costs_the_others_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = KinetoRun(tmp_path / "made", 1000)
    foreign_events(run)
    logs = tmp_path / "logs"
    logs.mkdir()
    shutil.copy(run.write() / "trace.json", logs / "rank0.1.pt.trace.json")
    (logs / "rank1.1.pt.trace.json").write_text("{}")
    made = pipeline.import_trace(logs, folder=tmp_path / "runs")
    assert len(made) == 1
    assert capsys.readouterr().err.count("\n") == 1
    assert len(list((tmp_path / "runs").iterdir())) == 1


def test_what_is_no_trace_is_one_clear_line(tmp_path: Path) -> None:
    other = tmp_path / "notes.json"
    other.write_text("hello", encoding="utf-8")
    empty = tmp_path / "empty"
    empty.mkdir()
    for path in (other, empty, tmp_path / "missing"):
        with pytest.raises(Problem) as problem:
            foreign.read(path)
        assert "\n" not in str(problem.value)


def test_categories_as_torch_1_11_wrote_them(tmp_path: Path) -> None:
    """Other names, steps among the operators, threads' numbers as text: the same run."""
    run = KinetoRun(tmp_path / "run", window_us=1000)
    run.op("aten::mm", 100, 300)
    run.kernel(200, 250, launched=120)
    run.kernel(500, 30, launched=350, cat="gpu_memcpy", name="Memcpy HtoD (Pageable -> Device)", bytes=64)
    run.mark("ProfilerStep#3", 50, 900)
    content = json.loads((run.write() / "trace.json").read_text())
    (tmp_path / "new.json").write_text(json.dumps(content))
    names = {new: old for old, new in OLD.items()} | {"user_annotation": "Operator"}
    for event in content["traceEvents"]:
        event["cat"] = names.get(event["cat"], event["cat"])
        event["tid"] = str(event["tid"]) if event["cat"] in ("Operator", "Runtime") else event["tid"]
    (tmp_path / "old.json").write_text(json.dumps(content))
    old, new = (attribute(foreign.read(tmp_path / f"{name}.json")) for name in ("old", "new"))
    assert [kernel.device_ms for kernel in old.unattributed_kernels] == [approx(0.25), approx(0.03)]
    assert old.unattributed_kernels == new.unattributed_kernels
    assert old.unattributed_ops == new.unattributed_ops
    assert old.steps == new.steps
    assert old.steps.captured == 1
