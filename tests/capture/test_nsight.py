"""The script under Nsight Compute: the words it is started with, its complaints, and its end."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.fake_ncu import fake_ncu
from warpline.capture import nsight
from warpline.model.problem import Problem
from warpline.wire.run import Request


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
