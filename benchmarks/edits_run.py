"""Do the edits that Warpline offered still run, and print what the script printed before?

    python benchmarks/edits_run.py BETS.json... [--folder DIR] [--only NAME...] [--jobs 2] [--limit 60]

BETS.json is what ``bets.py predict`` wrote: each edit with the whole text of the files it changes (of that
day: a script that was changed since is no comparison). Each script and each edited copy of it runs once, in
a copy of its folder, without a GPU; those of ``first_contact`` make themselves small there. What only a GPU
does (CUDA graphs, TF32, pinned memory) is not seen. Nothing is timed. What is printed for an edit:

- ``crash``: the edited script fails, and the script itself does not. The exit status is then 1.
- ``differs``: a number in its last line is another one, by more than ``--tolerance`` (relative): to be read,
  and no mistake by itself (bfloat16, another order of random numbers). ``unsteady``: so it does between two
  runs of the script itself.
- ``same``; ``late``: it took longer than ``--limit`` (compiling, mostly); ``no plain run``: the script itself
  fails here, or takes too long.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from betting import Bet, read  # beside this file

NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
#: A time, or a rate of work: no result.
CLOCKED = re.compile(r"\d[\d.]*\s*(?:ms|s|min|seconds|[\w ]+/s|it/s)\b")
IGNORED = shutil.ignore_patterns(".warpline", "__pycache__", "fixed", "*.md")


def main() -> int:
    kind = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=kind)
    parser.add_argument("bets", type=Path, nargs="+")
    parser.add_argument("--folder", type=Path, help="of the scripts, where it is not the one in BETS.json")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="scripts by their names")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for one run")
    parser.add_argument("--tolerance", type=float, default=0.02)
    options = parser.parse_args()
    scripts: dict[str, list[Bet]] = {}
    for bet in [bet for file in options.bets for bet in read(file)]:
        folder = str(options.folder or bet.folder)
        if not options.only or Path(bet.script).stem in options.only:
            scripts.setdefault(str(Path(folder, bet.script)), []).append(bet)
    counts: Counter[str] = Counter()
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for rows in pool.map(lambda item: judged(Path(item[0]), item[1], options), scripts.items()):
            for word, text in rows:
                counts[word] += 1
                print(f"{word:12}  {text}", flush=True)
    print(", ".join(f"{count} {word}" for word, count in sorted(counts.items())))
    return int("crash" in counts)


def judged(script: Path, bets: list[Bet], options: argparse.Namespace) -> list[tuple[str, str]]:
    """A word and a line for each edit of one script."""
    plain = ran(script, {}, bets[0].argv, options)
    rows = []
    for bet in bets:
        what = f"{bet.script}: {bet.fix} ({bet.rule})"
        if plain[0] != 0:
            rows.append(("no plain run", f"{what}: {plain[1]}"))
            continue
        code, said = ran(script, bet.texts, bet.argv, options)
        if code is None:
            rows.append(("late", what))
        elif code != 0:
            rows.append(("crash", f"{what}: {said}"))
        elif alike(plain[1], said, options.tolerance):
            rows.append(("same", what))
        else:
            again = ran(script, {}, bet.argv, options)[1]
            word = "differs" if alike(plain[1], again, options.tolerance) else "unsteady"
            rows.append((word, f"{what}:\n    {plain[1]}\n    {said}"))
    return rows


def ran(script: Path, texts: dict[str, str], argv: list[str], options: Any) -> tuple[int | None, str]:
    """``(exit status, last line)``, of the error output where it fails; status None: it took too long."""
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch, "scripts")
        shutil.copytree(script.parent, copy, ignore=IGNORED)
        for path, text in texts.items():
            (copy / path).write_text(text, encoding="utf-8")
        process = subprocess.Popen(
            [options.python, script.name, *argv], cwd=copy, text=True, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""},
        )  # fmt: skip
        try:
            out, err = process.communicate(timeout=options.limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # its loader workers as well
            process.communicate()
            return None, f"not over after {options.limit:.0f} s"
        lines = (out if process.returncode == 0 else err).strip().splitlines()
        return process.returncode, lines[-1] if lines else ""


def alike(first: str, second: str, tolerance: float) -> bool:
    both = [[float(one) for one in NUMBER.findall(CLOCKED.sub("", line))] for line in (first, second)]
    words = [NUMBER.sub("", CLOCKED.sub("", line)) for line in (first, second)]
    return (
        words[0] == words[1]
        and len(both[0]) == len(both[1])
        and all(abs(a - b) <= tolerance * max(abs(a), abs(b)) for a, b in zip(*both, strict=True))
    )


if __name__ == "__main__":
    sys.exit(main())
