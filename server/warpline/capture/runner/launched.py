"""The rank of this process, from the launcher's environment variables."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

#: Variables for rank, number of ranks, rank on this machine, number of ranks on this machine. Launchers come
#: before schedulers: a launcher inside a scheduler's job sets its variables in addition.
_NAMES = (
    ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"),  # torchrun, accelerate, deepspeed
    tuple("OMPI_COMM_WORLD_" + name for name in ("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE")),
    tuple("MV2_COMM_WORLD_" + name for name in ("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE")),
    ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),  # MPICH, Intel MPI
)


class Ranks(NamedTuple):
    """``local``: counted on this machine."""

    rank: int = 0
    world: int = 1
    local_rank: int = 0
    local_world: int = 1


def of_launcher(launcher: Sequence[str], environment: Mapping[str, str] = os.environ) -> Ranks:
    """This process's rank among those that ``launcher`` (its command; empty: none) has started.

    Variables that contradict each other are ignored.
    """
    if not launcher:
        return Ranks()
    for names in _NAMES:
        rank, world, local_rank, local_world = (_number(environment.get(name)) for name in names)
        by_slurm = local_rank is None and "PMI_RANK" in names and "SLURM_LOCALID" in environment
        if rank is not None and world is not None and not by_slurm:  # srun sets PMI_RANK too
            return _checked(rank, world, local_rank, local_world)
    return _of_slurm(launcher, environment)


def _of_slurm(launcher: Sequence[str], environment: Mapping[str, str]) -> Ranks:
    """Slurm sets SLURM_PROCID and SLURM_NTASKS in a batch script too, which is one process: only a task of
    ``srun`` has SLURM_STEP_NUM_TASKS."""
    world = _number(environment.get("SLURM_STEP_NUM_TASKS"))
    if world is None and any("srun" in os.path.basename(word) for word in launcher):
        world = _number(environment.get("SLURM_NTASKS"))
    rank = _number(environment.get("SLURM_PROCID"))
    if rank is None or world is None:
        return Ranks()
    on_nodes = environment.get("SLURM_STEP_TASKS_PER_NODE") or environment.get("SLURM_TASKS_PER_NODE") or ""
    node = _number(environment.get("SLURM_NODEID")) or 0
    return _checked(rank, world, _number(environment.get("SLURM_LOCALID")), _on_node(on_nodes, node))


def _on_node(text: str, node: int) -> int | None:
    """Tasks on a node by Slurm's list: ``4(x2),3`` is 4, 4 and 3."""
    for count, times in re.findall(r"(\d+)(?:\(x(\d+)\))?", text):
        node -= int(times or 1)
        if node < 0:
            return int(count)
    return None


def _checked(rank: int, world: int, local_rank: int | None, local_world: int | None) -> Ranks:
    local_rank = rank if local_rank is None else local_rank
    local_world = world if local_world is None else local_world
    possible = rank < world and local_rank < local_world <= world
    return Ranks(rank, world, local_rank, local_world) if possible else Ranks()


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() else None
