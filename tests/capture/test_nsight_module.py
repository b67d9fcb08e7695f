"""Where Nsight Compute's Python module is looked for: installations as NVIDIA's packages lay them out."""

from __future__ import annotations

from pathlib import Path

import pytest

from warpline.capture import nsight_module
from warpline.model.problem import Problem


def installation(folder: Path, package: bool = False) -> Path:
    """An installation of Nsight Compute in ``folder``; returns where its Python module is."""
    module = folder / "extras/python" / ("ncu_report" if package else "")
    module.mkdir(parents=True)
    (module / ("__init__.py" if package else "ncu_report.py")).touch()
    return folder / "extras/python"


def ncu(path: Path, *lines: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(("#!/bin/sh", *lines)))
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("package", [False, True])
def test_beside_ncu_also_through_a_link(tmp_path: Path, package: bool) -> None:
    module = installation(tmp_path / "nsight", package)
    link = tmp_path / "bin/ncu"
    link.parent.mkdir()
    link.symlink_to(ncu(tmp_path / "nsight/ncu"))
    assert nsight_module.find(link, tmp_path) == module


def test_two_folders_above_the_program(tmp_path: Path) -> None:
    module = installation(tmp_path / "nsight")
    program = ncu(tmp_path / "nsight/target/linux-desktop-glibc_2_11_3-x64/ncu")
    assert nsight_module.find(program, tmp_path) == module


def test_where_a_wrapper_script_points(tmp_path: Path) -> None:
    """As CUDA's bin/ncu; the installation is in no place that is known."""
    module = installation(tmp_path / "elsewhere/nsight-compute/2025.3.1")
    wrapper = ncu(tmp_path / "cuda/bin/ncu", f'exec "{tmp_path}/elsewhere/nsight-compute/2025.3.1/ncu" "$@"')
    assert nsight_module.find(wrapper, tmp_path) == module


def test_the_version_of_ncu_before_a_newer_one(tmp_path: Path) -> None:
    wanted = installation(tmp_path / "opt/nvidia/nsight-compute/2025.3.1")
    newest = installation(tmp_path / "usr/local/cuda-13.9/nsight-compute-2026.10.0")
    installation(tmp_path / "usr/local/cuda-13.8/nsight-compute-2026.9.0")
    known = ncu(tmp_path / "usr/local/cuda/bin/ncu", "echo 'Version 2025.3.1.0 (build 36398880)'")
    assert nsight_module.find(known, tmp_path) == wanted
    assert nsight_module.find(ncu(tmp_path / "bin/ncu", "exit 1"), tmp_path) == newest


def test_in_a_toolkit_that_only_the_environment_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "my-cuda"))
    module = installation(tmp_path / "my-cuda/nsight-compute-2025.3.1")
    assert nsight_module.find(ncu(tmp_path / "bin/ncu"), tmp_path) == module


def test_in_the_interpreters_own_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ncu_report.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    assert nsight_module.find(ncu(tmp_path / "bin/ncu"), tmp_path) is None


def test_nowhere_names_the_places(tmp_path: Path) -> None:
    (tmp_path / "opt/nvidia/nsight-compute/2025.3.1").mkdir(parents=True)
    with pytest.raises(Problem) as problem:
        nsight_module.find(ncu(tmp_path / "bin/ncu"), tmp_path)
    for place in ("bin/extras/python", "opt/nvidia/nsight-compute/2025.3.1/extras/python"):
        assert str(tmp_path / place) in str(problem.value)
    assert "ncu-report" in str(problem.value)
