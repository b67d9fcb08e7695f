"""``warpline kernel``: which kernel is meant, and what is read from Nsight Compute.

There is no GPU where these tests run. ``ncu`` is played by a shell script and its Python
module by a small one with the same names; the real pair is for ``tests/gpu``.
"""

from __future__ import annotations

import json
import shutil
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from tests.conftest import ROOT, ExampleRun
from warpline import pipeline, runs
from warpline.__main__ import main
from warpline.capture import nsight, nsight_module, probe
from warpline.commands.kernel import _read
from warpline.diagnosis import kernel_at
from warpline.diagnosis.files import text_of
from warpline.model.problem import Problem
from warpline.model.profile import Kernel
from warpline.model.run import Request
from warpline.trace.nsight import read
from warpline.view.kernel import kernel_table

TRANSPOSE = ROOT / "examples/transpose-kernel/slow.py"
STORE = next(n for n, text in enumerate(TRANSPOSE.read_text().splitlines(), 1) if "tl.store" in text)

MODULE = f'''
"""Stands in for NVIDIA's ncu_report: one launch, a load line that is fine and a store line that is not."""

LINES = {{100: {STORE - 1}, 104: {STORE}, 108: {STORE}}}
VALUES = {{
    "memory_l2_theoretical_sectors_global": {{100: 8.0, 104: 32.0, 108: 32.0}},
    "memory_l2_theoretical_sectors_global_ideal": {{100: 8.0, 104: 4.0, 108: 4.0}},
    "smsp__pcsamp_warps_issue_stalled_long_scoreboard": {{100: 25.0, 104: 75.0}},
    "smsp__pcsamp_warps_issue_stalled_long_scoreboard_not_issued": {{100: 20.0}},
    "gpu__time_duration.sum": 250000.0,
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": 6.0,
    "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": 93.0,
}}


class Source:
    def __init__(self, line):
        self.number = line

    def file_name(self):
        return {str(TRANSPOSE)!r}

    def line(self):
        return self.number


class Metric:
    def __init__(self, value):
        self.by_address = value if isinstance(value, dict) else {{}}
        self.value = value

    def has_correlation_ids(self):
        return bool(self.by_address)

    def correlation_ids(self):
        return Metric(dict(enumerate(self.by_address)))

    def num_instances(self):
        return len(self.by_address)

    def as_uint64(self, index):
        return int(self.as_double(index))

    def as_double(self, index=None):
        return self.value if index is None else list(self.by_address.values())[index]


class Action:
    def name(self):
        return "transpose_rows"

    def metric_names(self):
        return list(VALUES)

    def metric_by_name(self, name):
        return Metric(VALUES[name]) if name in VALUES else None

    def source_info(self, address):
        return Source(LINES[address])

    def rule_results_as_dicts(self):
        return [{{"name": "Uncoalesced", "rule_message": {{"message": "store wider"}}}}, {{"name": "Quiet"}}]


class Range:
    def num_actions(self):
        return 1

    def action_by_idx(self, index):
        return Action()


class Context:
    def num_ranges(self):
        return 1

    def range_by_idx(self, index):
        return Range()


def load_report(path):
    if not open(path).read().startswith("report"):
        raise RuntimeError("not a report")
    return Context()
'''


#: Writes the report to where --export says.
COLLECTS = """
while [ $# -gt 0 ]; do
  [ "$1" = --export ] && echo report > "$2"
  shift
done
"""


def fake_ncu(folder: Path, script: str) -> Path:
    ncu = folder / "ncu"
    ncu.write_text(f"#!/bin/sh\n{script}\n")
    ncu.chmod(0o755)
    (folder / "extras/python").mkdir(parents=True)
    (folder / "extras/python/ncu_report.py").write_text(MODULE)
    return ncu


def test_a_line_in_a_triton_kernel_means_that_kernel(example_run: ExampleRun) -> None:
    assert (
        kernel_at(pipeline.profile_of(example_run.run), TRANSPOSE, STORE, TRANSPOSE.read_text())
        == "transpose_rows"
    )


def test_a_line_that_launches_nothing_is_said(example_run: ExampleRun) -> None:
    with pytest.raises(Problem, match="launches no kernel"):
        kernel_at(pipeline.profile_of(example_run.run), example_run.script, 1, "")


def test_without_ncu_the_doctor_is_named(
    example_run: ExampleRun, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(probe, "nsight_compute", lambda: None)
    assert main(["kernel", "--run", str(example_run.run), f"{TRANSPOSE}:{STORE}"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "'warpline doctor' says how to get it" in line


def test_figures_land_on_the_kernels_lines(tmp_path: Path) -> None:
    ncu = fake_ncu(tmp_path, "")
    (tmp_path / "r.ncu-rep").write_text("report")
    inside = read(tmp_path / "r.ncu-rep", nsight_module.find(ncu))
    assert (inside.name, inside.duration_ms, inside.memory_percent) == ("transpose_rows", 0.25, 93.0)
    load, store = inside.lines
    assert (load.line, load.used_percent) == (STORE - 1, 100.0)
    assert (store.line, store.used_percent) == (STORE, 12.5)
    assert store.stalls == {"long_scoreboard": 75.0}
    assert inside.advice == (("Uncoalesced", "store wider"),)


def test_a_table_of_it(tmp_path: Path) -> None:
    ncu = fake_ncu(tmp_path, "")
    (tmp_path / "r.ncu-rep").write_text("report")
    shown = kernel_table(read(tmp_path / "r.ncu-rep", nsight_module.find(ncu)).with_texts(text_of))
    store = shown.rows[1]
    assert store.place == f"slow.py:{STORE}"
    assert store.source.startswith("tl.store(")
    assert store.memory == "4 of 32 bytes (12 %)"
    assert store.stalls == "long scoreboard 75 %"


@pytest.fixture
def looked_into(tmp_path: Path, example_run: ExampleRun, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of a run, in a working folder where ncu is the one that is played."""
    runs_folder = tmp_path / "work/.warpline/runs"
    shutil.copytree(example_run.run, runs_folder / "1")
    ncu = fake_ncu(tmp_path, COLLECTS)
    monkeypatch.setattr(probe, "nsight_compute", lambda: ncu)
    monkeypatch.chdir(tmp_path / "work")
    return runs_folder / "1"


def test_what_is_found_is_kept_beside_the_run(looked_into: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert runs.kernels(looked_into) == ()
    assert main(["kernel", f"{TRANSPOSE}:{STORE}"]) == 0
    (kept,) = runs.kernels(looked_into)
    assert kept.name == "transpose_rows"
    assert kept.lines[1].text.startswith("tl.store(")
    assert "4 of 32 bytes (12 %)" in capsys.readouterr().out
    # Looked into again: in place of the first.
    assert main(["kernel", f"{TRANSPOSE}:{STORE}"]) == 0
    assert runs.kernels(looked_into) == (kept,)


def test_what_is_kept_holds_as_long_as_the_kernel_reads_the_same(looked_into: Path) -> None:
    assert main(["kernel", f"{TRANSPOSE}:{STORE}"]) == 0
    (kept,) = runs.kernels(looked_into)
    text = TRANSPOSE.read_text()
    assert kept.holds_for({str(TRANSPOSE): text}.get)
    assert not kept.holds_for({str(TRANSPOSE): text.replace("tl.store(", "tl.store( ")}.get)
    assert not kept.holds_for({str(TRANSPOSE): "\n" + text}.get)
    assert not kept.holds_for({}.get)


def test_what_another_warpline_kept_is_left_alone(looked_into: Path) -> None:
    assert main(["kernel", f"{TRANSPOSE}:{STORE}"]) == 0
    (path,) = looked_into.glob("kernel-*.json")
    path.write_text(path.read_text().replace('"format":1', '"format":2'))
    (looked_into / "kernel-0.json").write_text("{")
    assert runs.kernels(looked_into) == ()
    with pytest.raises(Problem, match="format 2"):
        _read(str(path))


def test_two_versions_side_by_side(
    looked_into: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = tmp_path / "before.json"
    assert main(["kernel", "--json", str(before), f"{TRANSPOSE}:{STORE}"]) == 0
    capsys.readouterr()
    assert main(["kernel", "--against", str(before), "--json", "-", f"{TRANSPOSE}:{STORE}"]) == 0
    first, second = json.loads(capsys.readouterr().out)
    assert first == second == json.loads(before.read_text())
    assert main(["kernel", "--against", str(before), str(before)]) == 0
    assert "1.00 times as fast" in capsys.readouterr().out


def test_an_unreadable_report_is_a_problem(tmp_path: Path) -> None:
    ncu = fake_ncu(tmp_path, "")
    (tmp_path / "r.ncu-rep").write_text("junk")
    with pytest.raises(Problem, match="cannot be read: not a report"):
        read(tmp_path / "r.ncu-rep", nsight_module.find(ncu))


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo '==ERROR== ERR_NVGPUCTRPERM - The user does not have permission'", "doctor"),
        ("echo '==WARNING== No kernels were profiled.'", "k was not launched"),
        ("echo '==ERROR== Failed to connect.'", "Failed to connect"),
    ],
)
def test_what_ncu_complains_about_is_one_line(tmp_path: Path, script: str, said: str) -> None:
    ncu = fake_ncu(tmp_path, script)
    with pytest.raises(Problem, match=said):
        nsight.collect(Request(target="train.py"), "k", tmp_path / "r.ncu-rep", ncu)


def test_the_script_runs_as_it_was_asked_for(tmp_path: Path) -> None:
    ncu = fake_ncu(tmp_path, f'printf "%s\\n" "$@" > {tmp_path}/words; echo report > {tmp_path}/r.ncu-rep')
    request = Request(target="train.py", argv=("--epochs", "1"), python="/bin/sh", cwd=str(tmp_path))
    assert nsight.collect(request, "k", tmp_path / "r.ncu-rep", ncu).is_file()
    words = (tmp_path / "words").read_text().splitlines()
    assert words[-4:] == ["/bin/sh", "train.py", "--epochs", "1"]
    assert words[words.index("--kernel-name") + 1] == "regex:^k$"


def test_a_launcher_takes_the_interpreters_place(tmp_path: Path) -> None:
    ncu = fake_ncu(tmp_path, f'printf "%s\\n" "$@" > {tmp_path}/words; echo report > {tmp_path}/r.ncu-rep')
    asked = Request(target="train.py", python="/bin/sh", launcher=("torchrun", "--nproc-per-node", "2"))
    nsight.collect(asked, "k", tmp_path / "r.ncu-rep", ncu)
    words = (tmp_path / "words").read_text().splitlines()
    assert words[-4:] == ["torchrun", "--nproc-per-node", "2", "train.py"]


def test_what_the_script_leaves_behind_is_not_waited_for(tmp_path: Path) -> None:
    """As the workers of a loader, when ncu has ended their parent: they still hold its output."""
    ncu = fake_ncu(tmp_path, f"sleep 600 & echo $! > {tmp_path}/worker; echo report > {tmp_path}/r.ncu-rep")
    nsight.collect(Request(target="train.py", python="/bin/sh"), "k", tmp_path / "r.ncu-rep", ncu)
    assert not alive(int((tmp_path / "worker").read_text()))


def test_cancelling_ends_ncu_and_the_script(tmp_path: Path) -> None:
    ncu = fake_ncu(tmp_path, f"sleep 600 & echo $! > {tmp_path}/script; wait")
    cancelled = threading.Event()
    cancelled.set()
    request = Request(target="train.py", python="/bin/sh")
    with pytest.raises(Problem, match="cancelled") as problem:
        nsight.collect(request, "k", tmp_path / "r.ncu-rep", ncu, cancelled=cancelled)
    assert problem.value.status == 130
    if (tmp_path / "script").exists():  # it came as far as that
        assert not alive(int((tmp_path / "script").read_text()))


def alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_no_more_launches_are_passed_over_than_there_are(
    looked_into: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel that the run launched twice for certain: the second is looked at, not a sixth."""
    noted = f'echo "$@" > {tmp_path}/words\n' + COLLECTS
    (tmp_path / "ncu").write_text(f"#!/bin/sh\n{noted}\n")
    profile = pipeline.profile_of(looked_into)
    manifest = replace(profile.manifest, captured=((0, 1), (1, 2)), timed_ns=())
    cost = replace(profile.lines[0], kernels=(Kernel("transpose_rows", "forward", 1.0, 0.5),))
    seen = replace(profile, manifest=manifest, lines=(cost,))
    monkeypatch.setattr(pipeline, "profile_of", lambda run: seen)
    assert main(["kernel", "--json", str(tmp_path / "out.json"), f"{TRANSPOSE}:{STORE}"]) == 0
    words = (tmp_path / "words").read_text().split()
    assert words[words.index("--launch-skip") + 1] == "1"
