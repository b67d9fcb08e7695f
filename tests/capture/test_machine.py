"""What the runner says of the flags, whichever of torch's two ways the script set them in."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT, environment
from warpline.capture.runner.device import machine
from warpline.commands import doctor
from warpline.measure import timed
from warpline.ranks import engine
from warpline.trace import ranges
from warpline.wire import processors

#: Each statement in a child of its own: the flags are the process's.
ASK = f"""
import json, os, sys
sys.path.insert(0, {str(ROOT / "server")!r})
import torch
from warpline.capture.runner.device import machine
for statement in json.loads(sys.argv[1]):
    if not os.fork():
        exec(statement)
        print(json.dumps([statement, vars(machine.flags(torch))]), flush=True)
        os._exit(0)
    assert os.wait()[1] == 0, statement
"""
OLDER = {
    "pass": (False, "highest", True),
    "torch.set_float32_matmul_precision('high')": (True, "high", True),
    "torch.backends.cudnn.allow_tf32 = False": (False, "highest", False),
}
#: From torch 2.9 on; once set, the older flags cannot be read any more.
NEWER = {
    "torch.backends.cuda.matmul.fp32_precision = 'tf32'": (True, "high", True),
    "torch.backends.cudnn.conv.fp32_precision = 'ieee'": (False, "highest", False),
    "torch.backends.fp32_precision = 'tf32'": (True, "high", True),
}


def told(statements: list[str]) -> dict[str, dict[str, object]]:
    command = [sys.executable, "-c", ASK, json.dumps(statements)]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr
    return dict(map(json.loads, done.stdout.splitlines()))


def test_tf32_is_told_however_it_was_asked_for() -> None:
    import torch

    newer = hasattr(torch.backends.cuda.matmul, "fp32_precision")
    expected = {**OLDER, **(NEWER if newer else {})}
    found = told(list(expected))
    names = ("allow_tf32", "float32_matmul_precision", "cudnn_allow_tf32")
    assert {one: tuple(found[one][name] for name in names) for one in expected} == expected


@pytest.mark.parametrize(
    ("quota", "most"),
    [("150000 100000", 2), ("50000 100000", 1), ("max 100000", None), ("", None), (None, None)],
)
def test_cores_are_those_that_the_container_may_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quota: str | None, most: int | None
) -> None:
    """For the script, for all that runs side by side, and in what ``doctor`` says."""
    file = tmp_path / "cpu.max"
    if quota is not None:
        file.write_text(quota)
    monkeypatch.setattr(processors, "QUOTA", str(file))
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(8)))
    count = most or 8
    assert {one.cores() for one in (machine, timed, ranges, engine)} == {count}
    assert doctor._workers().found.split(",")[0] == ("1 core" if count == 1 else f"{count} cores")
