"""Which files and folders are the ranks."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from warpline import runs
from warpline.ranks.paths import of_ranks


def test_a_folder_with_a_run_of_each_node_stands_for_all_their_ranks(
    recorded: Callable[[str], Path], tmp_path: Path
) -> None:
    for node in ("node0", "node1"):
        shutil.copytree(recorded("nccl"), tmp_path / node)
    found = of_ranks([tmp_path])
    assert found == of_ranks([tmp_path / "node0", tmp_path / "node1"])
    assert [runs.manifest(folder).rank for folder in found] == [0, 1, 0, 1]
