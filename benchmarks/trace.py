"""Reading a trace: warpline against json.load, and against Holistic Trace Analysis where it is installed.

    python benchmarks/trace.py [TRACE…] [--events 65000 1000000] [--rounds 3]

Without TRACE, traces are recorded with torch.profiler first (so torch is needed then). What each does:
json.load only parses; HTA parses and links; warpline parses, links and attributes every op to a line.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "server"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from report_time import EVENTS_A_STEP, TORCHS, spread

from warpline import attribution
from warpline.trace import foreign

JSON = "import json, sys; json.load(open(sys.argv[1]))"
HTA = """
import sys
from hta.trace_analysis import TraceAnalysis
TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir=".")
"""


#: What links events, and how far apart the numbers of two copies are.
_NUMBERED = re.compile(r'("(?:External id|correlation|Correlation ID|Sequence number|id)": )([0-9]+)')
_NUMBERS = 10_000_000


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("traces", nargs="*", type=Path)
    parser.add_argument("--events", type=int, nargs="+", default=[65_000, 1_000_000])
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        traces = options.traces or [recorded(Path(folder), events) for events in options.events]
        print("| trace | events | json.load | warpline: read | warpline: read and attribute | HTA |")
        print("|---|---|---|---|---|---|")
        for path in traces:
            print(row(path, options.rounds), flush=True)
    return 0


def row(path: Path, rounds: int) -> str:
    count = path.read_bytes().count(b'"ph"')
    parsed, read, attributed, hta = [], [], [], []
    for _ in range(rounds):  # in turns, so that all of them meet the same noise
        parsed.append(process(JSON, path))
        read.append(timed(lambda: foreign.read(path)))
        attributed.append(timed(lambda: attribution.attribute(foreign.read(path))))
        if importlib.util.find_spec("hta"):
            hta.append(process(HTA, path))
    peer = spread(hta) if hta else "not installed"
    return f"| {path.name} | {count:,} | {spread(parsed)} | {spread(read)} | {spread(attributed)} | {peer} |"


def timed(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def process(code: str, path: Path) -> float:
    """In a process of its own (its start, measured beside it, taken off), so that nobody inherits memory."""
    start = min(
        timed(lambda: subprocess.run([sys.executable, "-c", "import json"], check=True)) for _ in range(3)
    )
    whole = timed(
        lambda: subprocess.run([sys.executable, "-c", code, str(path)], check=True, capture_output=True)
    )
    return max(0.0, whole - start)


def recorded(folder: Path, events: int) -> Path:
    script, path = folder / "loop.py", folder / f"{events}.json"
    script.write_text(TORCHS, encoding="utf-8")
    steps = str(max(1, round(events / EVENTS_A_STEP)))
    subprocess.run([sys.executable, str(script), "1", steps, str(path)], check=True, capture_output=True)
    return path


def repeated(folder: Path, events: int) -> Path:
    """A trace with kernels, which HTA's tables need: three steps of BERT as an H100 recorded them (47,000
    events, in ``tests/captures``), one after the other until there are ``events``."""
    with tarfile.open(ROOT / "tests/captures/fp32-bert.tar.xz") as archive:
        archive.extract("trace.json", folder, filter="data")
    text = (folder / "trace.json").read_text(encoding="utf-8")
    begin, end = text.index("[", text.index('"traceEvents"')) + 1, text.rindex("]")
    head, body, tail = text[:begin], text[begin:end].rstrip(), text[end:]
    moments = [float(one) for one in re.findall(r'"ts": ([0-9.]+)', body)]
    span = max(moments) - min(moments) + 1000
    path = folder / f"{events}.json"
    with path.open("w", encoding="utf-8") as file:
        file.write(head)
        for at in range(max(1, round(events / body.count('"ph"')))):
            file.write("," * bool(at) + _later(body, at * span, at * _NUMBERS))
        file.write(tail)
    return path


def _later(body: str, microseconds: float, numbers: int) -> str:
    """The events some time later, with higher numbers."""
    body = re.sub(r'"ts": ([0-9.]+)', lambda met: f'"ts": {float(met[1]) + microseconds:.3f}', body)
    return re.sub(_NUMBERED, lambda met: met[1] + str(int(met[2]) + numbers), body)


if __name__ == "__main__":
    sys.exit(main())
