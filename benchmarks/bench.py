"""One page: import, totals, own runs, ranks, overhead, server, proof, each beside its peers in the same run.

    python benchmarks/bench.py [PART…] [--trace FILE] [--peers FOLDER] [--quick]

``make bench`` installs the peers into ``--peers`` (an environment of its own) and fetches the sample traces
first. PART is any of import, totals, runs, ranks, overhead, server, proof; all of them take 40 to 50 minutes
on an idle machine, ``--quick``, with the fewest rounds, about 15. Every part is one of the scripts beside
this one, whose own table stands on the page. Each time is a line of ``history.jsonl``, also if it is
interrupted: commit, machine, load, medians and ratios of the import, and the tables of the other parts.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
HISTORY = HERE / "history.jsonl"
EVENTS, QUICK_EVENTS = 1_000_000, 200_000  # of the trace to import
#: Part -> script and its arguments; with --quick these instead.
PARTS = {
    "totals": ("sample_traces.py", [], []),
    "runs": ("report_time.py", ["--events", "65000", "1000000"], ["--events", "65000", "--rounds", "1"]),
    "ranks": ("many_ranks.py", ["--dask"], ["--dask", "--ranks", "8", "--events", "65000"]),
    "overhead": ("overhead.py", [], ["--rounds", "1"]),
    "server": ("lsp.py", [], ["--only", "start", "--rounds", "2"]),
    "proof": (
        "measurement.py",
        ["--repetitions", "20", "--seconds", "900"],
        ["--repetitions", "2", "--seconds", "105"],
    ),
}

PEERS = {"server": "bin", "totals": "bin/python"}  # what of their environment a script is given


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(["import", *PARTS]))
    parser.add_argument(
        "--trace", type=Path, help=f"to import; else one of {EVENTS:,} events, made of a recorded one"
    )
    # Absolute, since some scripts start the peers in another folder; not resolved, since an environment is
    # known by the path of its interpreter, which is a link.
    parser.add_argument(
        "--peers", type=lambda text: Path(text).absolute(), help="an environment with the peers"
    )
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    parts = options.parts or ["import", *PARTS]
    if unknown := set(parts) - {"import", *PARTS}:
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    print(f"{commit()}, {platform.processor() or platform.machine()}, {os.cpu_count()} cores, load {load()}")
    status = 0
    line: dict[str, Any] = {
        "when": datetime.now(timezone.utc).isoformat(timespec="seconds"), "commit": commit(),
        "cores": os.cpu_count(), "load": load(), "quick": options.quick,
    }  # fmt: skip
    try:
        for part in parts:
            print(f"\n## {part}\n", flush=True)
            if part == "import":
                failed, found = importing(options)
                line |= found
            else:
                failed, line[part] = scripted(part, options)
            status |= failed
    finally:
        with HISTORY.open("a", encoding="utf-8") as history:
            history.write(json.dumps(line) + "\n")
    return status


def scripted(part: str, options: argparse.Namespace) -> tuple[int, dict[str, Any]]:
    script, usual, quick = PARTS[part]
    command = [sys.executable, str(HERE / script), *(quick if options.quick else usual)]
    if options.peers and part in PEERS:
        command += ["--peers", str(options.peers / PEERS[part])]
    failed, rows = shown(command)
    return failed, {"status": failed, "table": rows}


def shown(command: list[str]) -> tuple[int, list[str]]:
    """Run a script, printing what it prints; its status, and the rows of its table."""
    rows = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for text in process.stdout or ():
            print(text, end="", flush=True)
            if text.startswith("|") and not text.startswith("|--"):
                rows.append(text.strip())
    return process.returncode, rows


def importing(options: argparse.Namespace) -> tuple[int, dict[str, Any]]:
    """Whether something failed, and what goes into the history: times, and what totals each reader has."""
    from trace import repeated  # benchmarks/trace.py: scripts find what stands beside them first

    from importing import compared

    hta = options.peers / "bin" / "python" if options.peers else None
    with tempfile.TemporaryDirectory() as folder:
        trace = options.trace or repeated(Path(folder), QUICK_EVENTS if options.quick else EVENTS)
        try:
            found = compared(trace, str(hta) if hta else None, 1 if options.quick else 3)
        except subprocess.CalledProcessError as error:
            print(f"{error}\n{error.stderr.decode(errors='replace')}")
            return 1, {}
        print("| reader | processor s | wall s | peak MB |\n|---|--:|--:|--:|")
        for reader, one in found.items():
            print(
                f"| {reader} | {one['cpu_s']:.2f} | {one['wall_s']:.2f} | {one['peak_mb']:.1f} |", flush=True
            )
        line: dict[str, Any] = {"trace_bytes": trace.stat().st_size, "import": found}
        if not hta:
            return 0, line
        print()
        failed, line["import totals"] = shown(
            [sys.executable, str(HERE / "sample_traces.py"), str(trace), "--peers", str(hta)]
        )
    return failed, line


def commit() -> str:
    """Its number; "-dirty" behind it where anything but the history was changed."""
    number, changed = (
        subprocess.run(["git", "-C", str(HERE), *words], capture_output=True, text=True, check=False).stdout
        for words in (
            ["describe", "--always"],
            ["status", "--porcelain", "--untracked-files=no", ":/", f":(exclude){HISTORY.name}"],
        )
    )
    return (number.strip() or "unknown") + "-dirty" * bool(changed.strip())


def load() -> float:
    """Processes that wanted a core in the last minute."""
    return round(os.getloadavg()[0], 1)


if __name__ == "__main__":
    sys.exit(main())
