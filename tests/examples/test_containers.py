"""The Dockerfile, the dev container and the batch job name what is there; no engine runs in the tests."""

from __future__ import annotations

import fnmatch
import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

from tests.conftest import LIMIT_S, ROOT, ExampleRun, environment

DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")


def test_what_is_copied_is_there_and_not_ignored() -> None:
    copied = [word for line in re.findall(r"^COPY (.*) \S+$", DOCKERFILE, re.M) for word in line.split()]
    assert {"pyproject.toml", "constraints.txt", "server"} <= set(copied)
    rules = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    kept = [rule.removeprefix("!") for rule in rules if rule.startswith("!")]
    for name in copied:
        assert (ROOT / name).exists(), name
        assert any(one == name or one.startswith(f"{name}/") for one in kept), name
    assert not any(fnmatch.fnmatch(".git/config", one) for one in kept)


def test_the_image_has_the_torch_that_is_tested() -> None:
    (torch,) = re.findall(r"^ARG TORCH=(\S+)$", DOCKERFILE, re.M)
    assert torch in (ROOT / "constraints.txt").read_text(encoding="utf-8").split()


def test_the_dev_container_is_a_stage_of_it() -> None:
    asked = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text(encoding="utf-8"))
    assert f" AS {asked['build']['target']}\n" in DOCKERFILE
    assert (ROOT / ".devcontainer" / asked["build"]["dockerfile"]).resolve() == ROOT / "Dockerfile"
    targets = [word for word in asked["postCreateCommand"].split()[1:] if "=" not in word]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8").replace("$(VENV)", ".venv")
    for target in targets:
        assert f"\n{target}:" in makefile or f"\n{target.replace('ready-dev', 'ready-%')}:" in makefile


def test_the_batch_job_runs(example_run: ExampleRun, tmp_path: Path) -> None:
    """By bash, with stand-ins: ``srun`` runs its words, and the profile is the one that was made already."""
    programs = {
        "srun": '#!/bin/bash\nexec "$@"\n',
        "warpline": f'#!/bin/bash\necho "$@" >> {tmp_path}/said\n'
        f'[ "$1" = profile ] || exec {sys.executable} -m warpline "$@"\n',
    }
    for name, text in programs.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755 | stat.S_IXUSR)
    job = ROOT / "docs/examples/job.sbatch"
    done = subprocess.run(
        ["bash", str(job)],
        cwd=tmp_path,
        env=environment(
            PATH=f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
            SLURM_SUBMIT_DIR=str(example_run.folder),
            SLURM_JOB_ID="7",
        ),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert done.returncode == 0, done.stderr
    said = (tmp_path / "said").read_text().splitlines()
    assert said[0].startswith(
        "profile --timeout 900 --launcher torchrun --standalone --nproc-per-node 2 train.py"
    )
    page = example_run.folder / "warpline-7.html"
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    page.unlink()
