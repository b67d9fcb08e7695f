"""Does a measurement end in its budget, whatever the script does?

    python benchmarks/endings.py [--budget 20] [--cores 1 2 4 16] [--only NAME ...]

Thirty scripts, each with a change that changes little, measured as ``fix --measure`` does it, in a process of
its own that pretends to have so many cores (they decide what is started ahead, not how quick anything is).
Prints how long each took and what it said, and exits with 1 if one took more than its budget and a tenth.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "server"))

from ending_scripts import left_over  # beside this file

#: Behind twice its budget a case hangs and is killed.
HANGS = 2.0
STARTUP_S = 1.0  # of this script's own child, which no command has

TRAIN = """\
import os, sys, time
BEFORE
import torch
MARK = "plain"
model = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
SETUP
def step():
    loss = model(torch.ones(32, 64)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
LOOP
AFTER
"""
FEW = "for at in range({}):\n    step()"
SLEEPS = "if MARK == 'changed':\n    time.sleep(10**6)"
LOCK = "import fcntl\nkept = open(__file__)\nfcntl.flock(kept, fcntl.LOCK_EX{})"
PORT = "import socket\nkept = socket.socket()\nkept.bind(('127.0.0.1', {port}))\nkept.listen()"
EPOCHS = """\
from torch.utils.data import DataLoader, TensorDataset
loader = DataLoader(TensorDataset(torch.ones({samples}, 4)), batch_size=8, num_workers={workers})
for epoch in range(10**6):
    for batch in loader:
        step()"""


def script(loop: str = FEW.format(10**9), before: str = "", setup: str = "", after: str = "") -> str:
    parts = {"BEFORE": before, "SETUP": setup, "LOOP": loop, "AFTER": after}
    return "\n".join(parts.get(line, line) for line in TRAIN.splitlines()) + "\n"


def cases() -> dict[str, str]:
    found = {f"{count} steps": script(FEW.format(count)) for count in (3, 5, 8, 12, 60, 300, 10**9)}
    found["slow steps"] = script("while True:\n    step()\n    time.sleep(1.5)")
    found["irregular steps"] = script(
        "for at in range(10**9):\n    step()\n    time.sleep(0.3 * (at % 7 == 0))"
    )
    for workers in (0, 1):
        found[f"short epochs, {workers} workers"] = script(EPOCHS.format(samples=64, workers=workers))
    found["long epochs, 1 worker"] = script(EPOCHS.format(samples=80000, workers=1))
    found["lock or fail"] = script(setup=LOCK.format(" | fcntl.LOCK_NB"))
    found["lock or wait"] = script(setup=LOCK.format(""))
    found["lock before torch"] = script(before=LOCK.format(" | fcntl.LOCK_NB"))
    found["port"] = script(setup=PORT.format(port=47391))
    found["changed sleeps in its first step"] = script(setup=SLEEPS)
    found["changed sleeps before torch"] = script(before=SLEEPS.replace("MARK", "'plain'"))
    found["changed sleeps later"] = script(
        "for at in range(10**9):\n    step()\n    if at > 40 and MARK != 'plain':\n        time.sleep(999)"
    )
    found["never steps"] = script("while True:\n    time.sleep(1)")
    found["busy without steps"] = script("while True:\n    pass")
    found["no steps at all"] = script("pass")
    found["much output"] = script("while True:\n    step()\n    print('x' * 100_000)")
    found["crashes early"] = script(setup="if MARK == 'changed':\n    raise ValueError('early')")
    found["crashes late"] = script(
        "for at in range(10**9):\n    step()\n    assert at < 60 or MARK == 'plain', 'late'"
    )
    found["plain crashes"] = script(setup="raise ValueError('plain')")
    found["ends abruptly"] = script(FEW.format(30), after="os._exit(3)")
    ignoring = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)"
    found["ignores Ctrl-C"] = script(before=ignoring)
    child = "import subprocess\nsubprocess.Popen([sys.executable, '-c', 'import time; time.sleep(10**6)'])"
    found["leaves a child"] = script(FEW.format(300), setup=child)
    found["slow to end"] = script(
        after="", loop="try:\n    while True:\n        step()\nfinally:\n    time.sleep(60)"
    )
    found["launcher"] = script()
    return found


def one(name: str, cores: int, budget_s: float) -> None:
    """In a process of its own: measure, and print what came of it as JSON."""
    from warpline.commands.deadline import Deadline
    from warpline.measure import timed
    from warpline.measure.candidate import Candidate
    from warpline.measure.contest import Contest
    from warpline.measure.pairs import QUICK
    from warpline.measure.timed import Processes
    from warpline.model.problem import Problem
    from warpline.wire.run import Request

    began = time.monotonic()
    limit = Deadline(began, budget_s)
    timed.cores = lambda: cores
    text = cases()[name]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "train.py")
        path.write_text(text)
        changed = text.replace('MARK = "plain"', 'MARK = "changed"').replace("'plain' == 'changed'", "True")
        ranks = ["torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
        launcher = (sys.executable, "-m", *ranks) if name == "launcher" else ()
        request = Request(target=str(path), cwd=folder, python=sys.executable, launcher=launcher)
        candidates = [
            Candidate((f"{number}",), f"change {number}", {str(path): changed + f"# {number}\n"})
            for number in range(2)
        ]
        timer = Processes(None if "steps" in name else 1.0, limit.ending_s)
        limit.timing_begins()
        contest = Contest(request, candidates, QUICK, timer, deadline=limit.end)
        ended: list[str] = []
        problem = ""
        with limit.enforced(ended):
            try:
                contest.run()
            except Problem as error:
                problem = str(error)
                if error.status == 130:
                    raise
        said = problem or "; ".join(f"{one.rounds}: {one.reason}" for one in contest.outcomes())
    print(json.dumps({"said": said, "ended": ended, "began": began}))


def case(name: str, cores: int, budget_s: float) -> bool:
    words = [sys.executable, __file__, "--one", name, "--cores", str(cores), "--budget", str(budget_s)]
    began = time.monotonic()
    process = subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=HANGS * budget_s + 30)
        said = json.loads(out.splitlines()[-1])["said"] if out.strip() else f"failed: {err.strip()[-200:]}"
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        said = "HANGS"
    seconds = time.monotonic() - began - STARTUP_S
    left = left_over(process.pid)
    within = seconds <= 1.1 * budget_s and not left and said != "HANGS" and "failed: " not in said
    word = "yes" if within else "NO"
    print(
        f"| {name} | {cores} | {budget_s:g} | {seconds:.1f} | {word} | {said[:150]}{' LEFT' * bool(left)} |",
        flush=True,
    )
    return within


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--budget", type=float, default=20.0)
    parser.add_argument("--cores", type=int, nargs="+", default=[1, 2, 4, 16])
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        one(options.one, options.cores[0], options.budget)
        return 0
    print("| script | cores (pretended) | budget s | took s | within | said |\n|---|---|---|---|---|---|")
    names = options.only or list(cases())
    done = [case(name, cores, options.budget) for name in names for cores in options.cores]
    print(f"\n{sum(done)} of {len(done)} within their budget and a tenth")
    return 0 if all(done) else 1


if __name__ == "__main__":
    sys.exit(main())
