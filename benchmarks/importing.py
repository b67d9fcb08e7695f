"""What `warpline import` takes, beside Holistic Trace Analysis, each in a process of its own.

    python benchmarks/importing.py TRACE [--hta PYTHON] [--rounds 3] [--json FILE]

``--hta``: the interpreter of an environment that has HolisticTraceAnalysis; it fails for traces without
kernels. What each does: warpline the whole command, from its start to the printed report and the packed
run; HTA loads the trace, and makes its tables of kernels, idle time and time by kind. Processor time of the
process and its children, which a busy machine distorts least, wall time, and the most memory that they have
at once (on Linux what they share counts once; elsewhere that of the largest one); medians of the rounds,
taken in turns. Compiled modules are kept, as they are where Warpline is installed: a first import that is
not counted leaves them.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

SERVER = Path(__file__).resolve().parents[1] / "server"
HTA = """
import sys
from hta.trace_analysis import TraceAnalysis
trace = TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir=".")
for table in (trace.get_gpu_kernel_breakdown, trace.get_idle_time_breakdown, trace.get_temporal_breakdown):
    table(visualize=False)
"""
MEASURES = ("cpu_s", "wall_s", "peak_mb")
POLL_S = 0.05
TINY = '{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "mm", "pid": 1, "tid": 1, "ts": 1, "dur": 1}]}'


def measured(command: list[str], environment: dict[str, str]) -> dict[str, float]:
    """Runs ``command``; raises CalledProcessError when it fails."""
    begin = time.perf_counter()
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            command, env=os.environ | environment, stdout=subprocess.DEVNULL, stderr=errors
        )
        ended, peaks = threading.Event(), [0.0]
        watch = threading.Thread(target=watched, args=(process.pid, ended, peaks))
        watch.start()
        _, status, used = os.wait4(process.pid, 0)
        ended.set()
        watch.join()
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            errors.seek(0)
            raise subprocess.CalledProcessError(process.returncode, command, stderr=errors.read()[-2000:])
    per_mb = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return {
        "cpu_s": used.ru_utime + used.ru_stime,
        "wall_s": time.perf_counter() - begin,
        "peak_mb": max(used.ru_maxrss / per_mb, *peaks),
    }


def watched(root: int, ended: threading.Event, peaks: list[float]) -> None:
    """Append to ``peaks`` whenever the process and its descendants have more memory than before, in MB."""
    while not ended.wait(POLL_S):
        now = sum(map(memory_mb, descendants(root)))
        if now > peaks[-1]:
            peaks.append(now)


def descendants(root: int) -> list[int]:
    """The process and all below it; only itself where there is no /proc."""
    found = [root]
    for process in found:
        try:
            below = Path(f"/proc/{process}/task/{process}/children").read_text().split()
        except OSError:
            continue
        found += map(int, below)
    return found


def memory_mb(process: int) -> float:
    """Its own memory, and its share of what it shares; 0 where that cannot be read."""
    try:
        text = Path(f"/proc/{process}/smaps_rollup").read_text()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in text.splitlines() if line.startswith("Pss:")), 0.0)


def compared(trace: Path, hta: str | None, rounds: int) -> dict[str, dict[str, float]]:
    """Medians of each reader, and the ratios of HTA's to ours."""
    found: dict[str, list[dict[str, float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        environment = {"PYTHONPATH": str(SERVER), "PYTHONDONTWRITEBYTECODE": ""}
        ours = [sys.executable, "-m", "warpline", "import", "--run-dir", folder]
        tiny = Path(folder, "tiny.json")
        tiny.write_text(TINY)
        measured([*ours, str(tiny)], environment)
        for _ in range(rounds):
            found.setdefault("warpline", []).append(measured([*ours, str(trace)], environment))
            if hta:
                found.setdefault("hta", []).append(measured([hta, "-c", HTA, str(trace)], {}))
    medians = {
        reader: {name: statistics.median(one[name] for one in runs) for name in MEASURES}
        for reader, runs in found.items()
    }
    if hta:
        medians["ratio"] = {name: medians["hta"][name] / medians["warpline"][name] for name in MEASURES}
    return medians


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("trace", type=Path)
    parser.add_argument("--hta", metavar="PYTHON")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = compared(options.trace, options.hta, options.rounds)
    for reader, values in found.items():
        print(f"{reader:10}" + "".join(f"  {name} {value:10.2f}" for name, value in values.items()))
    if options.json:
        options.json.write_text(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
