"""Launchers other than torchrun: what they set tells ranks apart, and some start any program."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.ranks.planted import planted_is_found
from warpline.capture.interpreter import from_beside, started_by
from warpline.capture.runner.launched import Ranks, of_launcher
from warpline.wire.run import Request

#: As Slurm starts tasks on one node.
SRUN = """\
#!/bin/sh
n=$2; shift 2
export SLURM_NTASKS=$n MASTER_ADDR=127.0.0.1 MASTER_PORT=@@
i=0; tasks=
while [ $i -lt $n ]; do SLURM_PROCID=$i SLURM_LOCALID=$i "$@" & tasks="$tasks $!"; i=$((i+1)); done
status=0; for task in $tasks; do wait $task || status=$?; done; exit $status
"""
BATCH = {"SLURM_JOB_ID": "7", "SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_NTASKS": "8"}
TASK = {
    "SLURM_PROCID": "5", "SLURM_LOCALID": "1", "SLURM_NODEID": "1", "SLURM_STEP_NUM_TASKS": "6",
    "SLURM_NTASKS": "6", "SLURM_STEP_TASKS_PER_NODE": "4,2",
}  # fmt: skip


@pytest.mark.parametrize(
    ("launcher", "environment", "expected"),
    [
        (
            "torchrun",
            {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"},
            (3, 4, 1, 2),
        ),
        ("torchrun", {"RANK": "1", "WORLD_SIZE": "2"}, (1, 2, 1, 2)),
        ("srun", TASK, (5, 6, 1, 2)),
        ("srun", TASK | {"SLURM_NODEID": "2", "SLURM_STEP_TASKS_PER_NODE": "1(x2),4"}, (5, 6, 1, 4)),
        ("srun", {"SLURM_PROCID": "1", "SLURM_LOCALID": "1", "SLURM_NTASKS": "2"}, (1, 2, 1, 2)),
        (
            "mpirun",
            BATCH
            | {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"}
            | {"OMPI_COMM_WORLD_LOCAL_RANK": "0", "OMPI_COMM_WORLD_LOCAL_SIZE": "1"},
            (1, 2, 0, 1),
        ),
        ("mpiexec", {"PMI_RANK": "2", "PMI_SIZE": "3"}, (2, 3, 2, 3)),
        ("accelerate", BATCH, (0, 1, 0, 1)),  # one process, in a job of eight tasks
        ("srun", {"SLURM_PROCID": "4", "SLURM_NTASKS": "2"}, (0, 1, 0, 1)),  # they contradict each other
        ("srun", {}, (0, 1, 0, 1)),
        ("srun", TASK | {"PMI_RANK": "5", "PMI_SIZE": "6"}, (5, 6, 1, 2)),
    ],
)
def test_the_place_of_a_rank(
    launcher: str, environment: dict[str, str], expected: tuple[int, int, int, int]
) -> None:
    assert of_launcher([f"/usr/bin/{launcher}", "-n", "2"], environment) == Ranks(*expected)


def test_without_a_launcher_variables_of_a_job_around_us_mean_nothing() -> None:
    assert of_launcher((), {"RANK": "3", "WORLD_SIZE": "4"} | TASK) == Ranks()


@pytest.mark.parametrize(
    ("launcher", "python"),
    [
        ("srun -n 2", True),
        ("/opt/bin/mpirun -np 2", True),
        ("mpiexec.hydra -n 2", True),
        ("mpirun -x PYTHONPATH=/opt/python --wdir /data/python-code -n 2", True),
        ("srun -n 2 python -u", False),
        ("srun -n 2 env A=1 /venv/bin/python3.12", False),
        ("srun -n 1 /venv/bin/torchrun --nproc-per-node 2", False),
        ("torchrun --nproc-per-node 2", False),
        ("accelerate launch", False),
    ],
)
def test_the_interpreter_stands_behind_what_starts_any_program(launcher: str, python: bool) -> None:
    words = tuple(launcher.split())
    found = started_by(Request(python="/p/python", launcher=words))
    assert found == (*words, *(["/p/python"] if python else []))


def test_a_launcher_that_is_not_on_the_path_is_found_beside_the_interpreter(tmp_path: Path) -> None:
    beside = tmp_path / "a-launcher"
    beside.write_text("")
    beside.chmod(0o755)
    found = started_by(Request(python=str(tmp_path / "python"), launcher=("a-launcher", "-n", "2")))
    assert found == (str(beside), "-n", "2")
    for words in (("no-launcher", "-n"), (".",)):
        assert from_beside(words, str(tmp_path / "python"))[-1] == words[-1]


@pytest.mark.skipif(sys.platform == "darwin", reason="gloo is not in every macOS build")
def test_tasks_of_srun_are_ranks_and_the_planted_slow_one_is_found(tmp_path: Path, free_port: int) -> None:
    srun = tmp_path / "srun"
    srun.write_text(SRUN.replace("@@", str(free_port)))
    srun.chmod(0o755)
    planted_is_found((str(srun), "-n", "2"), tmp_path)
