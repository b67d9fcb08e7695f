"""How smooth the page of `warpline report --html` is with many items, while its timeline is zoomed.

    python benchmarks/page.py [ITEMS]        # 100000

Repeats the timeline of a run recorded on a GPU until it has ITEMS items, and zooms in and out in a headless
Chromium (`npm ci` once; CHROMIUM names another one). The goal is 50 frames a second at 100 000 items, and a
page below 5 MB. A frame's time depends on what else the machine does. ``draw_ms`` is what the page's script
takes of it by the clock; ``script_cpu_ms`` and ``cpu_ms`` are the processor time of the page's main thread
per frame, of its script alone and of all it does, and do not depend on other processes.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "server"))

from warpline import pipeline
from warpline.html.page import page
from warpline.model.tracks import Timeline, Track

RUN = "loader-without-workers"


def items(timeline: Timeline) -> int:
    return sum(len(track.start_ns) for track in timeline.tracks)


def repeated(timeline: Timeline, times: int) -> Timeline:
    """The same capture ``times`` times, one after the other."""

    def of(track: Track) -> Track:
        columns = {
            name: getattr(track, name) * times for name in ("length_ns", "label", "line", "depth", "sort")
        }
        starts = (start + turn * timeline.length_ns for turn in range(times) for start in track.start_ns)
        return replace(track, start_ns=tuple(starts), **columns)

    steps = ((start + turn * timeline.length_ns, ns) for turn in range(times) for start, ns in timeline.steps)
    tracks = tuple(of(track) for track in timeline.tracks)
    return replace(timeline, length_ns=timeline.length_ns * times, steps=tuple(steps), tracks=tracks)


def measured(run: Path, wanted: int, file: Path, frames: int = 240) -> dict[str, float]:
    """Of a page in ``file`` made of ``run``, with at least ``wanted`` items, while it is zoomed."""
    timeline = pipeline.timeline_of(run)
    large = repeated(timeline, max(1, -(-wanted // items(timeline))))
    file.write_text(page(pipeline.report_of(run), pipeline.profile_of(run), large), encoding="utf-8")
    done = subprocess.run(
        ["node", str(ROOT / "benchmarks/page.mjs"), str(file), str(frames)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=300,
    )
    return {"items": items(large), "bytes": file.stat().st_size, **json.loads(done.stdout)}


def main(wanted: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        run = Path(name, "run")
        with tarfile.open(ROOT / f"tests/captures/{RUN}.tar.xz") as packed:
            packed.extractall(run, filter="data")
        print(json.dumps(measured(run, wanted, Path(name, "page.html"))))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
