"""The ranks of a large job, merged by `warpline ranks`: here, and on a local cluster of Dask.

    python benchmarks/many_ranks.py [--ranks 64] [--events 200000] [--dask]

Each rank's trace is steps of BERT as an H100 recorded them, one after the other until there are as many
events; every second rank has a quarter more. Processor time of the command and its children, wall time, and
the most memory that they have at once. On the cluster they are Dask's, so only the wall time is printed, and
whether the merged table is the same to the last bit. Goal: 64 ranks of 200,000 events in 30 s.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path
from trace import repeated

from importing import SERVER, measured

GOAL_S, GOAL_RANKS, GOAL_EVENTS = 30.0, 64, 200_000


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ranks", type=int, default=GOAL_RANKS)
    parser.add_argument("--events", type=int, default=GOAL_EVENTS)
    parser.add_argument("--dask", action="store_true", help="also on a local cluster of Dask")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        job = made(folder, options.ranks, options.events)
        command = [sys.executable, "-m", "warpline", "ranks", str(job), "--json"]
        environment = {"PYTHONPATH": str(SERVER)}
        here = measured([*command, str(folder / "here.json")], environment)
        print("| ranks | events each | where | processor s | wall s | peak MB | the same |")
        print("|--:|--:|---|--:|--:|--:|---|")
        size = f"| {options.ranks} | {options.events:,} "
        print(f"{size}| here | {here['cpu_s']:.1f} | {here['wall_s']:.1f} | {here['peak_mb']:.0f} | |")
        status = 0
        if options.ranks >= GOAL_RANKS and options.events >= GOAL_EVENTS:
            status |= here["wall_s"] > GOAL_S
        if options.dask:
            wall_s = on_dask([*command, str(folder / "there.json")], environment, folder)
            same = (folder / "here.json").read_bytes() == (folder / "there.json").read_bytes()
            status |= not same
            print(f"{size}| Dask | | {wall_s:.1f} | | {'yes' if same else 'no'} |")
    return status


def made(folder: Path, ranks: int, events: int) -> Path:
    """A folder with a trace for each rank. Ranks share two files, so that the disk holds them."""
    job = folder / "job"
    job.mkdir()
    files = [repeated(folder, events), repeated(folder, events * 5 // 4)]
    for rank in range(ranks):
        (job / f"host_rank{rank}.1.pt.trace.json").hardlink_to(files[rank % 2])
    return job


def on_dask(command: list[str], environment: dict[str, str], folder: Path) -> float:
    """Wall time of the command with a cluster that is there already, in seconds."""
    from distributed import LocalCluster

    os.environ |= environment  # of its workers
    cluster = LocalCluster(threads_per_worker=1, dashboard_address=None, local_directory=str(folder / "dask"))
    with cluster:
        begin = time.perf_counter()
        measured([*command, "--dask", cluster.scheduler_address], environment)
        return time.perf_counter() - begin


if __name__ == "__main__":
    sys.exit(main())
