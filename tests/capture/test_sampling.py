"""The sampled window: another process asks a script for its lines while nothing is recorded."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.capture.launching import Captured, request, write
from warpline.capture import probe
from warpline.capture.runner.lines.userfiles import UserFiles
from warpline.capture.runner.sampler.pyspy import PySpy

STEPS = """\
import time
import torch

def work(count):
    total = 0
    for value in range(count):
        total += value * value
    return total

net = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for step in range({steps}):
    work(40000)
    time.sleep(0.005)
    optimizer.zero_grad()
    net(torch.ones(4, 8)).sum().backward()
    optimizer.step()
{after}
"""
LOOP, SLEEP = range(4, 9), 14
#: Over in the sampled window: the timed one has half a second of 10 ms each.
FEW = 100


def steps(folder: Path, count: int = 100000, after: str = "") -> Captured:
    script = write(folder, STEPS.format(steps=count, after=after))
    asked = request(script, warmup=2, environment={"OMP_NUM_THREADS": "1", "LEAN": ""})  # the whole window
    return Captured(asked, folder, sampled=True)


def test_lines_are_counted_as_often_as_they_run(tmp_path: Path) -> None:
    run = steps(tmp_path)
    assert not [note for note in run.manifest.notes if "sampled" in note]
    samples = run.facts.samples
    assert samples.total > 500
    counts = {line: count for file, line, count in samples.lines if Path(file).name == "train.py"}
    loop, sleep = sum(counts.get(line, 0) for line in LOOP), counts[SLEEP]
    assert sum(counts.values()) > 0.9 * samples.total, "torch's own lines count for the script's"
    # Not more: on a busy machine autograd's thread waits for its turn, at the line of the backward.
    assert loop + sleep > 0.5 * samples.total
    assert sleep > 0.1 * samples.total
    assert loop > 0.1 * samples.total
    assert run.output == "", "nothing of ours, and nothing of the sampler's"
    assert not list(run.run.glob("samples.raw"))


EVALUATED = STEPS.format(steps=100000, after="").replace(
    "    work(40000)",
    """\
    if step % 20 == 19:
        net.eval()
        with torch.no_grad():
            for row in range(8):
                net(torch.ones(4, 8)); time.sleep(0.01)
        net.train()
    work(40000)""",
)


def test_steps_with_an_evaluation_count_for_no_line(tmp_path: Path) -> None:
    asked = request(write(tmp_path, EVALUATED), warmup=2, environment={"OMP_NUM_THREADS": "1", "LEAN": ""})
    run = Captured(asked, tmp_path, sampled=True)
    assert not [note for note in run.manifest.notes if "not sampled" in note]
    counts = {line: count for file, line, count in run.facts.samples.lines if Path(file).name == "train.py"}
    evaluated = next(n for n, text in enumerate(EVALUATED.split("\n"), 1) if "net(torch.ones(4, 8));" in text)
    assert sum(counts.get(line, 0) for line in LOOP) > 0
    assert counts.get(evaluated, 0) < 0.01 * run.facts.samples.total


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_a_script_without_threads_has_none_while_it_is_sampled(tmp_path: Path) -> None:
    """After its first thread a process's malloc locks, for good, and each line that allocates is slower."""
    run = steps(tmp_path, after="    import os; print(time.time_ns(), len(os.listdir('/proc/self/task')))")
    told = [[int(number) for number in line.split()] for line in run.output.splitlines()]
    before = [threads for moment, threads in told if moment < run.manifest.captured[0][0]]
    assert run.facts.samples.total > 500
    assert before.count(1) > 0.8 * len(before), (
        "torch's profiler starts one, in a step or two before the capture"
    )


def test_the_main_loop_s_lines_are_recorded_however_often_they_ran_before(tmp_path: Path) -> None:
    """Watching which lines are reached gives a long loop up: the capture must not."""
    text = STEPS.format(steps=100000, after="").replace("    work(40000)", "    for _ in range(20000): pass")
    run = Captured(request(write(tmp_path, text), warmup=2), tmp_path, sampled=True)
    assert {("train.py", line) for line in range(SLEEP, SLEEP + 4)} <= set(run.lines())


def test_a_script_that_ends_in_the_sampled_window_is_run_again(tmp_path: Path) -> None:
    run = steps(tmp_path, FEW)
    assert run.manifest.exit_status is None, "it ended well"
    assert len(run.manifest.captured) == 3
    assert "second time" in run.manifest.notes[0]
    assert run.facts.samples.total > 0, "as many of its steps as it has are sampled then"


def test_a_sampler_that_cannot_work_costs_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "sampler", lambda: shutil.which("false"))
    text = STEPS.format(steps=100000, after="")
    script = write(tmp_path, "import sys\nsys.executable = '/no/such/program'\n" + text)
    run = Captured(request(script, warmup=2), tmp_path, sampled=True)
    assert run.facts.samples.total == 0
    assert [note for note in run.manifest.notes if note.startswith("lines were not sampled (")]


@pytest.mark.parametrize("program", [shutil.which("false"), "/no/such/program", shutil.which("sleep")])
def test_py_spy_that_cannot_work(program: str, tmp_path: Path) -> None:
    with pytest.raises(OSError):
        PySpy(program, str(tmp_path / "raw"))


def test_py_spy_where_frames_are_not_found(tmp_path: Path) -> None:
    sampler = PySpy(probe.sampler(), str(tmp_path / "raw"))
    time.sleep(0.5)
    sampler.stop()
    found = sampler.found(UserFiles([str(Path(__file__).parent)], []), [])
    assert found["total"] > 20
    assert sum(count for *_, count in found["lines"]) > 0.9 * found["total"]
    assert not (tmp_path / "raw").exists()


@pytest.mark.parametrize(
    "called",
    [f"{threading.get_native_id()}", f"0x{threading.get_ident():X}"],
    ids=["system", "pthread"],
)
def test_py_spy_names_a_thread_as_the_system_or_as_pthread_does(called: str, tmp_path: Path) -> None:
    """As pthread does on Python before 3.11, whose frames do not say which thread of the system it is."""
    sampler = PySpy(probe.sampler(), str(tmp_path / "raw"))
    sampler.stop()
    sampler.rows = [f"thread ({called}): MainThread;<module> ({__file__}:4) 3\n", "thread (1): x;y (y:1) 9\n"]
    found = sampler.found(UserFiles([str(Path(__file__).parent)], []), [])
    assert found == {"total": 3, "lines": [(__file__, 4, 3)]}
    sampler.rows = sampler.rows[1:]
    with pytest.raises(OSError, match="thread that makes the steps"):
        sampler.found(UserFiles([str(Path(__file__).parent)], []), [])


def test_without_a_sampler_the_run_is_as_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "sampler", lambda: "")
    run = steps(tmp_path)
    assert run.facts.samples.total == 0
    assert not [note for note in run.manifest.notes if "sampled" in note]


def test_it_lies_beside_our_interpreter() -> None:
    found = probe.sampler()
    assert found, "py-spy is one of our dependencies"
    assert Path(found).parent == Path(sys.executable).parent
