"""What an import consists of, in processor seconds, beside what parsers alone need for the same file.

    python benchmarks/import_stages.py TRACE [--rounds 5]

The least of the rounds each, in this one process. Started: the whole command for a trace of one event, and
the compiled code that reads a large one. Where that does not run, msgspec decodes; it is shown beside.
``simdjson`` (pysimdjson) is measured if it is installed: it only parses, and makes no Python objects.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "server"), str(ROOT / "benchmarks")]

import msgspec
from importing import TINY, measured

from warpline.attribution import attribute, locate
from warpline.trace import decode, foreign
from warpline.trace.events import Tables
from warpline.trace.keep import keep
from warpline.trace.ranges import tables_of


class Nothing(msgspec.Struct, gc=False):
    """An event of which no field is read."""


def least(rounds: int, work: Callable[[], Any]) -> tuple[float, Any]:
    """Processor seconds, and what ``work`` returned."""
    found, result = [], None
    for _ in range(rounds):
        result = None
        gc.collect()
        begin = time.process_time()
        result = work()
        found.append(time.process_time() - begin)
    return min(found), result


def started(rounds: int, folder: Path) -> dict[str, float]:
    tiny = folder / "tiny.json"
    tiny.write_text(TINY)
    command = [sys.executable, "-m", "warpline", "import", "--run-dir", str(folder / "runs"), str(tiny)]
    numpy = [sys.executable, "-c", "import warpline.trace.ranges"]
    compiled = [sys.executable, "-c", "from warpline.trace import ranges, rows; assert rows.compiled()"]
    path = {"PYTHONPATH": str(ROOT / "server"), "PYTHONDONTWRITEBYTECODE": ""}
    least_of = {
        words[-1]: min(measured(words, path)["cpu_s"] for _ in range(rounds))
        for words in (command, numpy, compiled)
    }
    return {
        "started: the command": least_of[command[-1]],
        "started: the compiled code": least_of[compiled[-1]] - least_of[numpy[-1]],
    }


def parsers(rounds: int, text: bytes) -> dict[str, float]:
    skipping = msgspec.json.Decoder(msgspec.defstruct("Skipping", [("traceEvents", list[Nothing])])).decode
    found = {"parsing: msgspec, no field": least(rounds, lambda: skipping(text))[0]}
    if importlib.util.find_spec("simdjson"):
        import simdjson

        parser = simdjson.Parser()
        found["parsing: simdjson"] = least(rounds, lambda: len(parser.parse(text)))[0]
    return found


def stages(rounds: int, trace: Path, folder: Path) -> dict[str, float]:
    found = {}

    def read() -> Any:
        tables = Tables()
        return tables, decode.decode(trace, tables.take)[0]

    def ignored(_: object) -> None:
        pass

    found["decoding by msgspec, our fields"], _ = least(rounds, lambda: decode.decode(trace, ignored))
    found["decoding by msgspec, and columns"], _ = least(rounds, read)
    found["reading by compiled code"], _ = least(rounds, lambda: tables_of(trace, 1))
    found["packing the copy"], _ = least(rounds, lambda: keep(trace, folder))
    whole, linked = least(rounds, lambda: foreign.read(trace, 1))
    found["linking"] = whole - found["reading by compiled code"]
    found["attributing"], _ = least(rounds, lambda: attribute(linked, locate(linked)))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("trace", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    text = options.trace.read_bytes()
    mb, events = len(text) / 1e6, text.count(b'"ph"')
    print(f"{events:,} events, {mb:.0f} MB; load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as name, decode.collector_paused():
        found = started(options.rounds, Path(name)) | parsers(options.rounds, text)
        del text
        found |= stages(options.rounds, options.trace, Path(name))
    print("| stage | processor s | MB/s |\n|---|--:|--:|")
    for stage, seconds in found.items():
        rate = "" if stage.startswith("started") else f"{mb / seconds:.0f}"
        print(f"| {stage} | {seconds:.2f} | {rate} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
