"""Read traces made elsewhere into runs, and print the last one.

PATH is a Chrome trace of torch.profiler (.json or .json.gz), a TensorBoard log folder, or an export of Nsight
Systems (nsys export --type sqlite).
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from warpline.commands import output

_THREADS = "OPENBLAS_NUM_THREADS"


def configure(parser: argparse.ArgumentParser) -> None:
    output.configure(parser)
    parser.add_argument("--run-dir", metavar="DIR", help="where run folders go (.warpline/runs)")
    parser.add_argument("paths", nargs="+", metavar="PATH", help="a trace, or a folder of traces")


def run(options: argparse.Namespace) -> int:
    output.check(options)
    _import_numpy()
    from warpline.trace.heap import keep_freed
    from warpline.trace.ranges import Pool

    keep_freed()
    with Pool() as pool:
        pool.begin(Path(options.paths[0]))
        from warpline import pipeline  # meanwhile

        folder = Path(options.run_dir).absolute() if options.run_dir else None
        made = [
            one
            for path in options.paths
            for one in pipeline.import_trace(Path(path), folder=folder, pool=pool, meanwhile=output.prepare)
        ]
    for run_folder, _ in made[:-1]:
        print(f"imported into {run_folder}", file=sys.stderr)
    output.write(*made[-1], options)  # the newest, as `warpline show` does
    return 0


def _import_numpy() -> None:
    """Without the threads of its OpenBLAS, one for each core: they compute for 0.08 s before they sleep, and
    we multiply no matrices. What this process starts does not see the setting."""
    if _THREADS in os.environ:
        return
    os.environ[_THREADS] = "1"
    try:
        import numpy  # noqa: F401
    finally:
        del os.environ[_THREADS]
