"""On a GPU: the fixes of the four cases, measured."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.conftest import ROOT, warpline

#: What the project promises to gain in each case.
PROMISED = {
    "loader-without-workers": 2.5,
    "fp32-bert": 3.0,
    "transpose-kernel": 7.0,
    "layernorm-finetune": 1.4,
}


@pytest.mark.parametrize("name", PROMISED)
def test_the_fix_gains_what_is_promised(name: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples" / name, tmp_path / name)
    script = tmp_path / name / "slow.py"
    assert warpline("profile", script, cwd=tmp_path).returncode == 0
    done = warpline("tune", "--json", "-", script, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    best = json.loads(done.stdout)["best"]
    print(f"{name}: {best['speedup']:.2f} times as fast")
    assert best["speedup"] >= PROMISED[name]
