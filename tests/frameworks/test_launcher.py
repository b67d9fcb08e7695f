"""`accelerate launch` as a launcher."""

from __future__ import annotations

from pathlib import Path

from tests.frameworks.installed import PYTHON
from tests.ranks.planted import planted_is_found


def test_ranks_of_accelerate(tmp_path: Path, free_port: int) -> None:
    # With --cpu it starts one process; with --multi_gpu it hands over to torchrun, GPUs or not.
    module = "-m accelerate.commands.launch --multi_gpu --num_machines 1 --num_processes 2"
    port = ("--main_process_port", str(free_port))
    planted_is_found((PYTHON, *module.split(), *port), tmp_path, PYTHON)
