"""Makes the recorded runs again: profiles each script on this machine's GPU and packs its run.

    python tests/captures/record.py OUT [NAME...]

OUT gets NAME.tar.xz for each script, with its run folder as the capture left it, and reports.txt with
what was printed. The scripts are the examples and those below tests/gpu; some are recorded only when they
are named (``nccl`` needs two GPUs). Takes about 30 s a script: 12 s were enough before replacements were
tried, for which another process imports torch, and runs them for up to 10 s (``--probe``).
`make gpu-test` packs the runs that it makes likewise when WARPLINE_RECORDINGS names a folder.
Before they are committed: ``unxz *.xz; xz -9e *.tar``, which takes longer and makes them a third smaller.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: What later stages make of a run is made anew from the recording.
MADE_LATER = ("report.json", "profile.json")
#: Scripts in which nothing should be found.
WELL_MADE = {path.stem: path for path in sorted(ROOT.glob("tests/gpu/well_made/*.py"))}
#: What has a test of its own: two ranks on two GPUs, and CUDA graphs that torch.compile records.
APART = {"nccl": ROOT / "tests/gpu/ranks/nccl.py", "vae": ROOT / "tests/gpu/graphs/vae.py"}
#: CUDA graphs that the script captures itself.
GRAPHS = {
    name: ROOT / f"tests/gpu/graphs/{name}.py"
    for name in ("graph_server", "graphed_callables", "forked_graph")
}
#: torchrun, also where it is not on the PATH. NVLink's multicast is not to be had in every container.
LAUNCHER = f"{sys.executable} -m torch.distributed.run --nproc-per-node 2"
LAUNCHED = {"nccl": (["--launcher", LAUNCHER], {"NCCL_NVLS_ENABLE": "0"})}
#: Enough to tell one step from another, few enough to keep in the repository.
STEPS = 3


def scripts() -> dict[str, Path]:
    """The scripts of which runs are recorded, by the names of their recordings."""
    found = {path.parent.name: path for path in sorted(ROOT.glob("examples/*/slow.py"))}
    found |= {f"{path.parent.name}-fixed": path for path in sorted(ROOT.glob("examples/*/fixed.py"))}
    found |= {path.stem: path for path in sorted(ROOT.glob("tests/gpu/scripts/*.py"))}
    return found | WELL_MADE


def profiled(name: str, folder: Path, out: Path | None, *, trials: bool = True) -> Path | None:
    """The run of one script, made below ``folder`` and packed into ``out``; None when there is none.

    ``trials``: replacements are tried, as for a user; only findings and predictions need them.
    """
    began = time.monotonic()
    path = os.pathsep.join(filter(None, (str(ROOT / "server"), os.environ.get("PYTHONPATH"))))
    script = (scripts() | APART | GRAPHS)[name].relative_to(ROOT)
    more, settings = LAUNCHED.get(name, ([], {}))
    limits = ["--steps", str(STEPS), "--timeout", "100"]
    tried = [] if trials else ["--probe", "0"]
    words = ["profile", *more, *limits, *tried, "--run-dir", str(folder), str(script)]
    done = subprocess.run(
        [sys.executable, "-m", "warpline", *words],
        cwd=ROOT,
        env={**os.environ, **settings, "PYTHONPATH": path, "COLUMNS": "150"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    print(f"{name}: exit status {done.returncode}, {time.monotonic() - began:.1f} s", flush=True)
    run = next((manifest.parent for manifest in folder.glob("*/manifest.json")), None)
    if out is not None:
        with (out / "reports.txt").open("a") as log:
            log.write(f"\n##### {name}: exit status {done.returncode}\n{done.stdout}")
        if run is not None:
            pack(run, out / f"{name}.tar.xz")
    return run


def pack(run: Path, target: Path) -> None:
    with tarfile.open(target, "w:xz", preset=2) as packed:
        for file in sorted(run.iterdir()):
            if file.name not in MADE_LATER:
                packed.add(file, file.name)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    missed = 0
    for name in options.names or scripts():
        with tempfile.TemporaryDirectory() as folder:
            missed += profiled(name, Path(folder), options.out) is None
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
