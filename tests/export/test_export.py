"""`warpline export`: the original events stay, ours are well-formed tracks, TensorBoard reads its files.

test_perfetto.py asks Perfetto itself, in a browser; what it would reject (slices of a track that overlap
without nesting, missing fields) is looked for here as well.
"""

from __future__ import annotations

import gzip
import json
import os
import struct
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT, ExampleRun, warpline
from warpline import pipeline, runs
from warpline.export import chrome, tensorboard, tracks
from warpline.model.problem import Problem

#: An interpreter that has tensorboard and torch_tb_profiler, to read with what users read with.
PEER = os.environ.get("WARPLINE_TENSORBOARD_PYTHON")


@pytest.fixture(scope="module")
def gpu_run(recorded: Callable[[str], Path]) -> Path:
    return recorded("nccl")


@pytest.fixture(scope="module")
def folder(gpu_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("export")
    done = warpline("export", "--perfetto", "out.json.gz", "--tensorboard", "logs", str(gpu_run), cwd=place)
    assert done.returncode == 0, done.stderr
    return place


@pytest.fixture(scope="module")
def exported(folder: Path) -> dict[str, Any]:
    with gzip.open(folder / "out.json.gz") as file:
        content: dict[str, Any] = json.load(file)
    return content


def ours(content: dict[str, Any], process: int) -> list[dict[str, Any]]:
    return [e for e in content["traceEvents"] if e.get("cat") == tracks.CATEGORY and e["pid"] == process]


def original(run: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((run / "trace.json").read_bytes())
    return content


def test_the_original_events_are_all_there(exported: dict[str, Any], gpu_run: Path) -> None:
    before = original(gpu_run)
    assert exported["traceEvents"][-len(before["traceEvents"]) :] == before["traceEvents"]
    assert {key: value for key, value in exported.items() if key != "traceEvents"} == {
        key: value for key, value in before.items() if key != "traceEvents"
    }


def test_our_tracks_are_named_and_their_slices_do_not_overlap(exported: dict[str, Any]) -> None:
    names = {e["pid"]: e["args"]["name"] for e in exported["traceEvents"] if e["name"] == "process_name"}
    of_track = defaultdict(list)
    for process in (tracks.STEPS, tracks.HOST, tracks.DEVICE, tracks.FINDINGS):
        assert names[process].startswith("Warpline: ")
        for event in ours(exported, process):
            assert {"ph", "name", "pid", "tid", "ts", "dur"} <= event.keys()
            of_track[process, event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    assert len(of_track) >= 5
    for spans in of_track.values():
        spans.sort()
        assert all(end <= start + 1e-3 for (_, end), (start, _) in pairwise(spans))


def test_every_attributed_kernel_has_its_line(exported: dict[str, Any], gpu_run: Path) -> None:
    """By the line's device time: what the track shows in the captured steps is what the report says."""
    report = pipeline.report_of(gpu_run)
    start, end = (
        (at - original(gpu_run)["baseTimeNanoseconds"]) / 1e3 for at in pipeline.scene_of(gpu_run).window
    )
    shown: dict[int, float] = defaultdict(float)
    for event in ours(exported, tracks.DEVICE):
        if event["ts"] < end and event["ts"] + event["dur"] > start:
            part = min(end, event["ts"] + event["dur"]) - max(start, event["ts"])
            shown[event["args"]["line"]] += part / 1e3 / report.steps.captured
    hot = [line for line in report.lines if line.device_ms > 0.5]
    assert len(hot) >= 2
    for line in hot:
        assert shown[line.line] == pytest.approx(line.device_ms, rel=0.02)


def test_findings_stand_where_their_hot_lines_ran(exported: dict[str, Any], gpu_run: Path) -> None:
    report = pipeline.report_of(gpu_run)
    slices = ours(exported, tracks.FINDINGS)
    assert {event["name"] for event in slices} == {finding.rule for finding in report.findings}
    assert all(event["args"]["message"] for event in slices)


def test_a_run_of_a_cpu_too(example_run: ExampleRun, tmp_path: Path) -> None:
    done = warpline("export", "--perfetto", str(tmp_path / "out.json"), cwd=example_run.folder)
    assert done.returncode == 0, done.stderr
    content = json.loads((tmp_path / "out.json").read_bytes())
    captured = len(runs.manifest(example_run.run).captured)
    assert [event["name"] for event in ours(content, tracks.STEPS)] == [f"step {n}" for n in range(captured)]
    assert any("loss.backward()" in event["name"] for event in ours(content, tracks.HOST))
    assert not ours(content, tracks.DEVICE)


def test_no_events_of_its_own_and_none_of_ours(tmp_path: Path) -> None:
    (tmp_path / "trace.json").write_text('{"baseTimeNanoseconds": 7, "traceEvents": [\n]}')
    assert chrome.base_ns(tmp_path / "trace.json") == 7
    for events in ([], [{"ph": "X"}], [{"ph": "X"}, {"ph": "M"}]):
        chrome.write(tmp_path / "trace.json", events, tmp_path / "out.json")
        assert json.loads((tmp_path / "out.json").read_text())["traceEvents"] == events


def records(path: Path) -> Iterator[bytes]:
    """Those of a TFRecord file, their checksums checked bit by bit."""

    def masked(data: bytes) -> int:
        crc = 0xFFFFFFFF
        for byte in data:
            crc ^= byte
            for _ in range(8):
                crc = (crc >> 1) ^ (0x82F63B78 * (crc & 1))
        crc = ~crc & 0xFFFFFFFF
        return ((crc >> 15) | (crc << 17) & 0xFFFFFFFF) + 0xA282EAD8 & 0xFFFFFFFF

    content = path.read_bytes()
    while content:
        (length,) = struct.unpack("<Q", content[:8])
        data = content[12 : 12 + length]
        assert struct.unpack("<I", content[8:12])[0] == masked(content[:8])
        assert struct.unpack("<I", content[12 + length : 16 + length])[0] == masked(data)
        content = content[16 + length :]
        yield data


def test_the_event_file_has_its_checksums_and_every_step(folder: Path, gpu_run: Path) -> None:
    (path,) = folder.glob(f"logs/{gpu_run.name}/events.out.tfevents.*")
    found = list(records(path))
    assert b"brain.Event:2" in found[0]
    steps = [record for record in found if b"warpline/step_ms" in record]
    values = [struct.unpack("<f", record[-4:])[0] for record in steps]
    timed = runs.manifest(gpu_run).timed_ns
    assert values == pytest.approx([length / 1e6 for length in timed])
    assert sum(b"warpline/findings" in record for record in found) == 1


def test_the_plugin_s_trace_marks_the_steps(folder: Path, gpu_run: Path) -> None:
    (path,) = folder.glob(f"logs/{gpu_run.name}/warpline.*.pt.trace.json.gz")
    content = json.loads(gzip.decompress(path.read_bytes()))
    marks = [e for e in content["traceEvents"] if str(e.get("name")).startswith(tensorboard.STEP)]
    captured = runs.manifest(gpu_run).captured
    assert [round(mark["dur"] * 1000) for mark in marks] == [end - start for start, end in captured]


@pytest.mark.skipif(PEER is None, reason="WARPLINE_TENSORBOARD_PYTHON names no interpreter with tensorboard")
def test_tensorboard_and_its_profiler_plugin_read_it(folder: Path, gpu_run: Path) -> None:
    script = ROOT / "tests/export/read_with_tensorboard.py"
    words = [str(PEER), str(script), str(folder / "logs" / gpu_run.name)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    report = pipeline.report_of(gpu_run)
    assert found["scalars"]["warpline/mean_step_ms"] == [pytest.approx(report.steps.step_ms, rel=1e-6)]
    assert report.findings[0].rule in found["texts"]["warpline/findings"]
    assert found["steps"] == [str(number) for number in range(report.steps.captured)]
    kernels = [e for e in original(gpu_run)["traceEvents"] if e.get("cat") == "kernel"]
    assert found["kernel_us"] == pytest.approx(sum(event["dur"] for event in kernels))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "say what to write"),
        (["--perfetto", "no/where.json"], "there is no such folder"),
        (["--perfetto", "out.json", "gone"], "there is no run gone"),
        (["--tensorboard", "file"], "cannot write"),
    ],
)
def test_wrong_input_is_one_line_and_status_2(
    example_run: ExampleRun, tmp_path: Path, words: list[str], said: str
) -> None:
    (tmp_path / "file").write_text("")
    run = [] if "gone" in words else [str(example_run.run)]
    done = warpline("export", *words, *run, cwd=tmp_path)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert said in line


def test_a_trace_that_was_cut_off_is_one_clear_problem(tmp_path: Path) -> None:
    events = ",".join(json.dumps({"name": os.urandom(16).hex()}) for _ in range(1000))
    whole = gzip.compress(f'{{"traceEvents": [{events}]}}'.encode())
    cut = tmp_path / "trace.json.gz"
    cut.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(Problem, match="is damaged"):
        chrome.base_ns(cut)
    with pytest.raises(Problem, match="is damaged"):
        chrome.write(cut, [], tmp_path / "out.json")
    assert list(tmp_path.iterdir()) == [cut]
