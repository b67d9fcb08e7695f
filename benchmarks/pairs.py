"""Pairs of programs made by others: is a mended script faster by what Warpline promised for its flaw?

    python benchmarks/pairs.py time ROUND --out PAIRS.json [--gpus 0,1] [--seconds 500] [--rounds 2] ...
    python benchmarks/pairs.py show ROUND PAIRS.json RESULTS.json... [--least 1.05]
    python benchmarks/pairs.py time ROUND --out EDITS.json --bets BETS.json ...
    python benchmarks/pairs.py edits BETS.json EDITS.json

ROUND has scripts with one planted flaw each, marked as ``first_contact.py`` says, and ``ROUND/fixed/NAME.py``
is the same script with the flaw mended.

``time`` runs both without Warpline, under ``bets/beats.py``: on each GPU one process at a time, on processors
of its own, while the next ones import torch and make their data on a few others (up to their first use of
the GPU; edits that compile up to their first steps). Who is ready first is timed first. The second round goes
the other way round, and so on until ``--seconds`` are over. Pairs that were not reached are named. PAIRS.json
is written after each pair, and a later call adds to it. ``--only`` also sets their order. With ``--gpus ""``
the scripts see no GPU, and run one at a time.

The gain is the plain script's time of a turn of its loop by the fixed one's (the geometric mean of the
rounds). Where both ran to their end and made different numbers of turns (a larger batch, say), it is the
ratio of all turns' time.

``show`` joins that with the findings that ``first_contact.py`` has in RESULTS.json: of the planted rule, at a
marked line if there are such, else the one that promises most. What several of them promise adds up. Flaws
that cost less than ``--least`` are listed apart: they are none at this size.

With ``--bets`` Warpline's own edits of the scripts, which ``bets.py predict`` has written down, are timed as
well (with ``--no-twins`` nothing else); ``edits`` prints what these promised and gained.
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bets import now, over, say
from betting import read as read_bets  # beside this file
from first_contact import programs
from pairing import Pairs, edit, read, show, show_edits, write

CLOCK = Path(__file__).resolve().parent / "bets/beats.py"
#: What processes that are not timed yet have of a GPU's processors: one each, and at least so many.
AHEAD_CORES = 2
OVER = "the time is over"


@dataclass
class Started:
    """A process on its way to its turn. ``ready``: the file that it makes when it waits; None: it can have
    its turn at any time."""

    name: str
    number: int
    which: str
    process: subprocess.Popen[bytes]
    ready: Path | None

    @property
    def waits(self) -> bool:
        return self.ready is None or self.ready.exists() or self.process.poll() is not None


@dataclass
class Lane:
    """One GPU, or none, with its processors: ``cores`` for what is timed, ``others`` for what is not yet."""

    gpu: str
    cores: list[int]
    others: list[int]
    #: What is left of the pair that is being started: (name, round, which).
    pair: deque[tuple[str, int, str]] = field(default_factory=deque)
    waiting: list[Started] = field(default_factory=list)

    def next(self, ends: float) -> Started:
        """The first that is ready; the first of all where none is before ``ends``."""
        while time.monotonic() < ends:
            for one in self.waiting:
                if one.waits:
                    self.waiting.remove(one)
                    return one
            time.sleep(0.05)
        return self.waiting.pop(0)


def lanes(gpus: list[str], ahead: int) -> list[Lane]:
    every = sorted(os.sched_getaffinity(0))
    size = max(1, len(every) // len(gpus))
    found = []
    for at, gpu in enumerate(gpus):
        mine = every[at * size : (at + 1) * size]
        wanted = max(AHEAD_CORES, ahead)
        spare = wanted if ahead and len(mine) >= 2 * wanted else 0
        found.append(Lane(gpu, mine[: len(mine) - spare], mine[len(mine) - spare :]))
    return found


class Timing:
    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self.options, self.folder = options, folder
        self.compiling = set[tuple[str, str]]()  # (name, which)
        self.ends = time.monotonic() + options.seconds
        self.pairs: Pairs = read(options.out)
        self.lock = threading.Lock()
        self.programs = {one.name: one for one in programs(options.round)}
        self.texts = self.variants()
        self.todo = self.planned()
        self.running: set[subprocess.Popen[bytes]] = set()

    def variants(self) -> dict[str, dict[str, dict[str, str]]]:
        """Name -> which -> the texts that are other than in its folder, by their path in there."""
        found: dict[str, dict[str, dict[str, str]]] = {}
        fixed = self.options.round / "fixed"
        for one in programs(fixed) if fixed.exists() and not self.options.no_twins else []:
            texts = {Path(path): (fixed / path).read_text(encoding="utf-8") for path in one.sources}
            own = {str(path.relative_to(one.name) if one.cwd else path): text for path, text in texts.items()}
            found[one.name] = {"fixed": own}
        for bet in read_bets(self.options.bets) if self.options.bets is not None else []:
            mine = found.setdefault(bet.name, {})
            which = edit(sum(which != "fixed" for which in mine))
            mine[which] = bet.texts
            if bet.fix.startswith("Compile"):
                self.compiling.add((bet.name, which))
        return {
            name: {"plain": {}, **found[name]}
            for wanted in self.options.only
            for name in found
            if fnmatch.fnmatch(name, wanted) and name in self.programs
        }

    def planned(self) -> deque[list[tuple[str, int, str]]]:
        """(name, round, which) of each script in the order in which they run; what is known is left out."""
        todo: list[list[tuple[str, int, str]]] = []
        for number in range(self.options.rounds):
            for name, changed in self.texts.items():
                order = list(changed) if number % 2 == 0 else list(changed)[::-1]
                known = {(run["round"], run["which"]) for run in self.pairs.get(name, {}).get("runs", [])}
                todo.append([(name, number, which) for which in order if (number, which) not in known])
        return deque(some for some in todo if some)

    def copy(self, name: str, which: str) -> Path:
        """The script in a copy of its folder, with the texts that are changed."""
        script = self.programs[name].script
        to = self.folder / f"{name}-{which.replace(' ', '-')}"
        if not to.exists():
            ignored = shutil.ignore_patterns("fixed", ".warpline", "__pycache__")
            shutil.copytree(script.parent, to, ignore=ignored)
            for path, text in self.texts[name][which].items():
                (to / path).write_text(text, encoding="utf-8")
        return to / script.name

    def reached(self, name: str) -> bool:
        """The script as it was and another variant of it ran, and said how long their turns took."""
        known = {run["which"] for run in self.pairs.get(name, {}).get("runs", []) if "ms" in run}
        return "plain" in known and len(known) > 1

    def fill(self, lane: Lane) -> None:
        """Starts the next processes, as far as the machine has processors for them beside what is timed."""
        wanted = 1 + self.options.ahead if lane.others else 1
        while len(lane.waiting) < wanted and time.monotonic() < self.ends:
            if not lane.pair:
                with self.lock:
                    if not self.todo:
                        return
                    lane.pair += self.todo.popleft()
            name, number, which = lane.pair.popleft()
            script = self.copy(name, which)
            ready, held = None, dict[str, str]()
            if lane.gpu and lane.others:
                ready = script.parent / f"ready-{number}"
                at = "beats" if (name, which) in self.compiling else "device"
                threads = os.environ.get("OMP_NUM_THREADS", str(len(lane.cores)))
                held = {"BEATS_HOLD": at, "BEATS_READY": str(ready), "BEATS_THREADS": threads}
            process = subprocess.Popen(
                [self.options.python, str(CLOCK), str(self.options.window), str(script)],
                cwd=script.parent,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                start_new_session=True,
                env={**os.environ, "CUDA_VISIBLE_DEVICES": lane.gpu, **held},
            )
            with contextlib.suppress(OSError):  # it may be over already
                os.sched_setaffinity(process.pid, lane.others or lane.cores)
            self.running.add(process)
            lane.waiting.append(Started(name, number, which, process, ready))

    def work(self, lane: Lane) -> None:
        while True:
            self.fill(lane)
            if not lane.waiting or time.monotonic() >= self.ends:
                break
            one = lane.next(self.ends)
            name, number, which = one.name, one.number, one.which
            began = time.monotonic()
            result = self.timed(one.process, lane)
            result |= {"round": number, "which": which, "seconds": round(time.monotonic() - began, 1)}
            if result.get("reason") == OVER:
                break
            with self.lock:
                known = self.pairs.setdefault(name, {"at": now(), "runs": []})
                known["runs"].append(result)
                write(self.options.out, self.pairs)
            told = f"{result['ms']:.2f} ms, {result['beats']} beats" if "ms" in result else result["reason"]
            say(f"{name} {which} (round {number + 1}): {told}, {result['seconds']:.0f} s")

    def timed(self, process: subprocess.Popen[bytes], lane: Lane) -> dict[str, Any]:
        """What ``beats.py`` said of it, or a ``reason``."""
        left = self.ends - time.monotonic()
        go = ",".join(map(str, lane.cores)) + "\n"
        try:
            _, said = process.communicate(
                go.encode() if process.poll() is None else None,
                timeout=max(1.0, min(self.options.limit, left)),
            )
        except subprocess.TimeoutExpired:
            return {"reason": OVER if left < self.options.limit else f"no end in {self.options.limit:.0f} s"}
        finally:
            over(process)
            self.running.discard(process)
        lines = said.decode(errors="replace").strip().splitlines()
        for line in reversed(lines):
            _, brace, rest = line.partition('{"beats"')  # behind a progress bar
            if brace:
                found: dict[str, Any] = json.loads(brace + rest)
                return found if "ms" in found else {**found, "reason": "no loop was seen"}
        return {"reason": f"failed: {lines[-1] if lines else process.returncode}"}

    def close(self) -> None:
        for process in list(self.running):
            over(process)


def time_them(options: argparse.Namespace) -> None:
    options.round = options.round.resolve()
    with tempfile.TemporaryDirectory() as folder:
        timing = Timing(options, Path(folder))
        gpus = options.gpus.split(",") if options.gpus else [""]
        threads = [
            threading.Thread(target=timing.work, args=[lane], daemon=True)
            for lane in lanes(gpus, options.ahead)
        ]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                while thread.is_alive():
                    thread.join(1.0)
        finally:
            timing.close()
    missing = [name for name in timing.texts if not timing.reached(name)]
    print(f"{len(timing.texts) - len(missing)} of {len(timing.texts)} scripts were timed with a change")
    for name in missing:
        reasons = [run["reason"] for run in timing.pairs.get(name, {}).get("runs", []) if "reason" in run]
        print(f"{name}: {reasons[0] if reasons else 'not reached'}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("time")
    one.add_argument("round", type=Path)
    one.add_argument("--out", type=Path, required=True)
    one.add_argument(
        "--gpus",
        default="0" if shutil.which("nvidia-smi") else "",
        help='their numbers, with commas (0 where there is one); "": no GPU',
    )
    one.add_argument("--seconds", type=float, default=math.inf, help="for everything")
    one.add_argument("--rounds", type=int, default=2)
    one.add_argument("--window", type=float, default=5.0, help="seconds of beats in one process (5)")
    one.add_argument("--limit", type=float, default=60.0, help="seconds for one process (60)")
    one.add_argument("--ahead", type=int, default=2, help="processes of a GPU that start meanwhile (2)")
    one.add_argument("--bets", type=Path, help="time the edits of bets.py predict as well")
    one.add_argument("--no-twins", action="store_true", help="only the edits")
    one.add_argument("--only", nargs="+", default=["*"], metavar="NAME", help="names, or patterns of them")
    one.add_argument("--python", default=sys.executable)
    one.set_defaults(work=time_them)
    two = commands.add_parser("show")
    two.add_argument("round", type=Path)
    two.add_argument("pairs", type=Path)
    two.add_argument("results", type=Path, nargs="+")
    two.add_argument("--least", type=float, default=1.05, help="a flaw that costs less is none (1.05)")
    two.set_defaults(work=show)
    three = commands.add_parser("edits")
    three.add_argument("bets", type=Path)
    three.add_argument("pairs", type=Path)
    three.set_defaults(work=show_edits)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # stopped children would stay
    options.work(options)


if __name__ == "__main__":
    main()
