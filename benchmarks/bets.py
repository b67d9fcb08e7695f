"""Bets: predictions written down before anything is timed, and then timed without Warpline.

    python benchmarks/bets.py predict --out BETS.json [--most 4] [--label first] [--seconds 200] SCRIPT...
    python benchmarks/bets.py time BETS.json [--rounds 3] [--window 2] [--seconds 200] [--ahead]
    python benchmarks/bets.py show BETS.json...

``predict`` profiles each script once and writes, for every finding with a prediction and an edit, what it
promises and the text of the files with the fix made; with ``--runs DIR`` by runs that first_contact.py has
kept in DIR. ``--by-hand bets/by_hand.json`` has edits that a person
made for findings that offer none. ``time`` touches no prediction: it copies the script's
folder twice, writes the changed texts into one copy, and runs both in turn under ``bets/clock.py``, which
knows nothing of Warpline: so many rounds of plain, changed, changed, plain (several fixes of one script in
one round share the plain runs). The gain is the median of the
rounds' ratios; on a CPU of the median steps (on a shared machine a few steps take many times as long), on a
GPU of the mean ones. ``--processor`` takes the process's own processor time instead, on machines
that are busy with something else; it says nothing of fixes that end a wait (loaders), which are left out.
What runs beside slows processor time down too, for seconds at a time: ``--interleaved`` runs plain and
changed in turn, in slices.
``show`` prints the table, with first contact and later rounds (``--label``) apart.

Fixes that change how many samples a step has (``small-batch``) are left out: steps do not compare then.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from datetime import datetime, timezone
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "server"))

from betting import Bet, program_name, read, show, write  # beside this file

if TYPE_CHECKING:
    from warpline.measure.proposals import Workbench
    from warpline.model.report import Finding

CLOCK = ROOT / "benchmarks/bets/clock.py"
LEFT_OUT = {"small-batch"}
#: Of a turn of processes that run interleaved, in seconds.
SLICE_S = 0.2
IGNORED = shutil.ignore_patterns(".warpline", ".git", "__pycache__", ".venv", "node_modules")


def predict(options: argparse.Namespace) -> None:
    from warpline import pipeline
    from warpline.measure.fixes import workbench
    from warpline.model.problem import Problem
    from warpline.wire.run import Request

    bets: list[Bet] = read(options.out) if options.out.exists() else []
    ends = time.monotonic() + options.seconds
    for word in options.scripts:
        if time.monotonic() >= ends:
            say(f"{word}: no time left")
            continue
        script = Path(word).resolve()
        request = Request(
            target=str(script), cwd=str(script.parent), python=options.python, timeout_s=options.limit
        )
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            try:
                if options.runs is not None:
                    run = recorded(options.runs / program_name(script))
                    report = pipeline.report_of(run)
                else:
                    run, report = pipeline.profile(request, folder=Path(folder))
                profile = pipeline.profile_of(run)
            except Problem as problem:
                say(f"{script.name}: {problem}")
                continue
            # A run that was recorded elsewhere has the script in another folder.
            bench = workbench(profile, profile.sources if options.runs is not None else None)
        found: list[Bet] = []
        for finding in report.findings:
            said = finding.predicted
            if said is None or finding.rule in LEFT_OUT or len(found) >= options.most:
                continue
            fix = changed(bench, finding, Path(profile.manifest.script), options)
            if fix is None:
                continue
            title, texts = fix
            found.append(
                Bet(
                    *(script.name, str(script.parent), list(request.argv), finding.rule, title),
                    *(said.basis, said.speedup, said.low or said.speedup, said.high or said.speedup, texts),
                    *(options.label, report.environment.device.name, now()),
                )
            )
        bets += found
        write(options.out, bets)
        say(f"{script.name}: {len(found)} bets, {time.monotonic() - began:.0f} s")


def recorded(folder: Path) -> Path:
    """The latest run of a folder of runs. Raises Problem."""
    from warpline.model.problem import Problem

    runs = sorted(one for one in folder.glob("*") if one.is_dir())
    if not runs:
        raise Problem(f"no run in {folder}")
    return runs[-1]


def changed(
    bench: Workbench, finding: Finding, script: Path, options: argparse.Namespace
) -> tuple[str, dict[str, str]] | None:
    """``(what is done, texts)`` of the finding's edit, or of the one that was written by hand; else None."""
    proposals = bench.proposals([finding])
    candidate = bench.candidate(proposals) if proposals else None
    if candidate is not None:
        inside = {
            path: text for path, text in candidate.overlay.items() if Path(path).is_relative_to(script.parent)
        }
        return proposals[0].title, {
            os.path.relpath(path, script.parent): text for path, text in inside.items()
        }
    known = json.loads(options.by_hand.read_text(encoding="utf-8")) if options.by_hand else {}
    pieces = known.get(program_name(script), {}).get(finding.rule, {})
    text = bench.texts(str(script)) or ""
    if not pieces or any(text.count(old) != 1 for old in pieces):
        return None
    for old, new in pieces.items():
        text = text.replace(old, new)
    return "by hand", {script.name: text}


def time_them(options: argparse.Namespace) -> None:
    bets = read(options.bets[0])
    ends = time.monotonic() + options.seconds
    for number in range(options.rounds):
        for script in dict.fromkeys((bet.folder, bet.script, bet.label) for bet in bets):
            mine = [bet for bet in bets if (bet.folder, bet.script, bet.label) == script and not bet.reason]
            mine = [bet for bet in mine if len(bet.ratios) <= number]
            if options.processor:
                mine = [bet for bet in mine if "loader" not in bet.rule]
            if mine and time.monotonic() < ends:
                timed(mine, options)
                write(options.bets[0], bets)


def timed(bets: list[Bet], options: argparse.Namespace) -> None:
    """One round of a script's bets: plain, each fix, each fix in the other order, plain.

    What the machine gains or loses evenly meanwhile meets plain and changed alike.
    """
    with tempfile.TemporaryDirectory() as folder:
        copies = [Path(folder, str(at)) for at in range(1 + len(bets))]
        for copy, texts in zip(copies, [{}, *(bet.texts for bet in bets)], strict=True):
            shutil.copytree(bets[0].folder, copy, ignore=IGNORED)
            for path, text in texts.items():
                (copy / path).write_text(text, encoding="utf-8")
        scripts = [copy / bets[0].script for copy in copies]
        if options.interleaved:
            once = interleaved(scripts, bets[0], options)
            took = [*once, *reversed(once)]
        else:
            took = stepped([*scripts, *reversed(scripts)], bets[0], options)
    if took[0] is None or took[-1] is None:
        for bet in bets:
            bet.reason = "the plain script made no steps that could be timed"
        return
    plain = math.sqrt(took[0] * took[-1])
    for at, bet in enumerate(bets, 1):
        first, second = took[at], took[-1 - at]
        bet.plain_ms = plain
        if first is None or second is None:
            bet.reason = "the changed script made no steps that could be timed"
            continue
        bet.ratios.append(plain / math.sqrt(first * second))
        say(f"{bet.script} {bet.rule}: {bet.predicted:.2f} promised, {bet.ratios[-1]:.2f} seen")


def stepped(scripts: list[Path], bet: Bet, options: argparse.Namespace) -> list[float | None]:
    """A usual step of each, in milliseconds, one after the other. With ``--ahead`` the next one imports torch
    meanwhile, and waits before it runs a line of the script."""
    started: list[subprocess.Popen[bytes]] = []
    found = []
    try:
        for at in range(len(scripts)):
            wanted = min(len(scripts), at + 1 + options.ahead)
            started += [begun(script, bet, options) for script in scripts[len(started) : wanted]]
            found.append(ended(started[at], bet, options))
    finally:
        for process in started:
            over(process)
    return found


def interleaved(scripts: list[Path], bet: Bet, options: argparse.Namespace) -> list[float | None]:
    """The same of processes that are alive together and run in turn, ``SLICE_S`` each, the others stopped.

    What a neighbour on the same core takes from one slice it takes from the next ones as well.
    """
    started = [begun(script, bet, options) for script in scripts]
    ends = time.monotonic() + options.limit * len(scripts)
    found: list[float | None] = []
    try:
        for process in started:
            assert process.stdin is not None
            os.kill(process.pid, signal.SIGSTOP)
            process.stdin.write(b"go\n")
            process.stdin.flush()
        while time.monotonic() < ends and any(process.poll() is None for process in started):
            for process in started:
                if process.poll() is None:
                    os.kill(process.pid, signal.SIGCONT)
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(SLICE_S)
                    if process.poll() is None:
                        os.kill(process.pid, signal.SIGSTOP)
        found = [ended(process, bet, options) if process.poll() is not None else None for process in started]
    finally:
        for process in started:
            over(process)
    return found


def begun(script: Path, bet: Bet, options: argparse.Namespace) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [options.python, str(CLOCK), str(options.window), str(options.warmup), str(script), *bet.argv],
        cwd=script.parent,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
        env={**os.environ, "BETS_PROCESSOR": "1"} if options.processor else None,
    )


def ended(process: subprocess.Popen[bytes], bet: Bet, options: argparse.Namespace) -> float | None:
    """Lets it run its script: what a usual step of it takes. None where it made none in time."""
    try:
        _, said = process.communicate(b"go\n" if process.poll() is None else None, timeout=options.limit)
    except subprocess.TimeoutExpired:
        return None
    finally:
        over(process)
    for line in reversed(said.decode(errors="replace").splitlines()):
        _, brace, rest = line.partition('{"steps"')  # behind a progress bar
        if brace:
            found = json.loads(brace + rest)
            if options.processor:
                return float(found["cpu_ms"])
            return median(found["times_ms"]) if cpu(bet) else found["mean_ms"]
    return None


def over(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)  # its loader workers as well
    if process.returncode is None:
        process.communicate()


def cpu(bet: Bet) -> bool:
    return "NVIDIA" not in bet.device


def now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("predict")
    one.add_argument("scripts", nargs="+")
    one.add_argument("--out", type=Path, required=True)
    one.add_argument("--most", type=int, default=4, help="bets on one script (4)")
    one.add_argument("--runs", type=Path, help="DIR/NAME/RUN: runs that first_contact.py has kept")
    one.add_argument("--by-hand", type=Path, help="JSON: script, rule, old text, new text; see by_hand.json")
    one.add_argument("--label", default="first", help="first: scripts that nobody tuned a rule on")
    one.set_defaults(work=predict)
    two = commands.add_parser("time")
    two.add_argument("bets", type=Path, nargs=1)
    two.add_argument("--rounds", type=int, default=3)
    two.add_argument("--window", type=float, default=2.0, help="seconds of steps in one process (2)")
    two.add_argument("--warmup", type=int, default=5, help="steps passed over (5)")
    two.add_argument("--ahead", action="store_true", help="import torch for the next run meanwhile")
    two.add_argument(
        "--processor", action="store_true", help="processor time: for a busy machine, and no loaders"
    )
    two.add_argument(
        "--interleaved", action="store_true", help="with --processor: all at once, in slices of SLICE_S"
    )
    two.set_defaults(work=time_them)
    three = commands.add_parser("show")
    three.add_argument("bets", type=Path, nargs="+")
    three.set_defaults(work=show)
    for each in (one, two):
        each.add_argument("--python", default=sys.executable)
        each.add_argument("--limit", type=float, default=90.0, help="seconds for one process (90)")
        each.add_argument("--seconds", type=float, default=math.inf, help="begin no script after so long")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # a stopped child would stay
    options.work(options)


if __name__ == "__main__":
    main()
