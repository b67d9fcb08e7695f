"""Scripts that could make a measurement hang, and what one has left behind: for ``command_endings.py`` and
``endings.py``."""

from __future__ import annotations

import contextlib
import time

from warpline.capture import tree

#: Killed processes end so soon, even on a busy machine.
ENDS_S = 2.0
#: ``CHANGED`` is true in a process that one of the fixes changed: other workers, no anomaly mode, or the
#: fused activation.
TRAIN = """\
import os, sys, time
BEFORE
import torch
from torch.utils.data import DataLoader, Dataset

class Rows(Dataset):
    def __len__(self):
        return SAMPLES
    def __getitem__(self, at):
        row = torch.full((256,), float(at % 7))
        for _ in range(100):
            row = row.sin()
        return row

def act(x):
    return 0.5 * x * (1.0 + torch.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))

def started(number):
    pass
WORKER

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(256, 1024)
        self.last = torch.nn.Linear(1024, 8)
    def forward(self, x):
        return self.last(act(self.first(x)))

torch.manual_seed(0)
torch.autograd.set_detect_anomaly(True)
model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
loader = DataLoader(Rows(), batch_size=16, num_workers=WORKERS, worker_init_fn=started)
CHANGED = loader.num_workers != WORKERS or not torch.is_anomaly_enabled()
CHANGED = CHANGED or "gelu" in act.__code__.co_names
SETUP
done = 0
for epoch in range(10**9):
    for batch in loader:
        loss = model(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        done += 1
        STEP
        if done >= STEPS:
            break
    if done >= STEPS:
        break
AFTER
"""
LOCK = "import fcntl\nkept = open(__file__)\nfcntl.flock(kept, fcntl.LOCK_EX{})"
PORT = "import socket\nkept = socket.socket()\nkept.bind(('127.0.0.1', 47392))\nkept.listen()"
NAP = "time.sleep(10**6)"
DEAF = """\
import signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal(signal.SIGTERM, signal.SIG_IGN)"""
THREAD = f"import threading\nthreading.Thread(target=lambda: {NAP}).start()"
COMPILE = f"""\
def backend(graph, inputs):
    if CHANGED:
        {NAP}
    return graph.forward
model = torch.compile(model, backend=backend)"""
CHILD = f"import subprocess\nsubprocess.Popen([sys.executable, '-c', 'import time; {NAP}'])"


def script(steps: int = 10**9, samples: int = 100_000, workers: int = 0, **parts: str) -> str:
    text = TRAIN.replace("SAMPLES", str(samples)).replace("WORKERS", str(workers))
    text = text.replace("STEPS", str(steps))
    for name in ("BEFORE", "WORKER", "SETUP", "STEP", "AFTER"):
        lines = parts.get(name.lower(), "pass").splitlines()
        at = next(line for line in text.splitlines() if line.strip() == name)
        indent = at.removesuffix(name)
        text = text.replace(at + "\n", "".join(f"{indent}{line}\n" for line in lines), 1)
    return text


def scripts() -> dict[str, str]:
    deaf = (
        "    " + DEAF.replace("\n", "\n    ") + "\n    import atexit\n    atexit.register(time.sleep, 10**6)"
    )
    return {
        "3 steps": script(3),
        "8 steps": script(8),
        "60 steps": script(60),
        "300 steps": script(300),
        "many steps": script(),
        "slow steps": script(step="time.sleep(1.5)"),
        "irregular steps": script(step="time.sleep(0.3 * (done % 7 == 0))"),
        "short epochs": script(samples=160),
        "epochs, 1 worker": script(samples=1600, workers=1),
        "4 workers": script(workers=4),
        "workers that ignore SIGTERM": script(workers=2, samples=1600, worker=f"def started(n):\n{deaf}"),
        "file lock": script(setup=LOCK.format(" | fcntl.LOCK_NB")),
        "port": script(setup=PORT),
        "waits for a file lock": script(before=LOCK.format("")),
        "launcher": script(),
        "endless compile": script(setup=COMPILE),
        "slow to start": script(before="time.sleep(6)"),
        "hangs in the first step": script(step=f"if CHANGED: {NAP}"),
        "hangs in a measured step": script(step=f"if CHANGED and done > 60: {NAP}"),
        "never steps": script(setup=NAP),
        "much output": script(step="print('x' * 100_000)"),
        "crashes": script(setup="raise ValueError('plain')"),
        "crashes when changed": script(setup="if CHANGED: raise ValueError('early')"),
        "crashes late when changed": script(step="assert done < 60 or not CHANGED, 'late'"),
        "hangs at exit": script(60, after=NAP),
        "hangs in atexit": script(60, setup="import atexit\natexit.register(time.sleep, 10**6)"),
        "thread that never ends": script(60, setup=THREAD),
        "ignores Ctrl-C and SIGTERM": script(before=DEAF),
        "ends abruptly": script(60, after="os._exit(3)"),
        "leaves a child": script(300, setup=CHILD),
    }


def left_over(pid: int) -> list[int]:
    """Processes that the command ``pid`` should have ended, and that do not end by themselves."""
    mark, ends = f"{tree.MARK}={pid}-".encode(), time.monotonic() + ENDS_S
    while True:
        found = []
        for entry in tree.processes():
            with contextlib.suppress(OSError):
                if mark in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
        if not found or time.monotonic() > ends:
            return found
        time.sleep(0.1)
