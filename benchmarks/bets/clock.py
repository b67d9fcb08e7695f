"""``python clock.py SECONDS WARMUP SCRIPT ARGS...``: runs SCRIPT and prints what its steps take. No Warpline.

It imports torch, and waits for a line on standard input before it runs SCRIPT, whose own input is empty.

A step ends when an optimizer's ``step`` returns, or, in a script that makes none, when a model that is called
by no other model returns. WARMUP steps, and at least SECONDS / 2, are passed over; then steps are counted
for SECONDS, with a device waited for only at the beginning and at the end. Of a script that ends before the
SECONDS / 2, the second half of its steps counts, but for the WARMUP ones. The result is one line of JSON on
standard error: ``{"steps", "mean_ms", "times_ms"}``; on a CPU ``times_ms`` has each step.
``cpu_ms`` is what the process's threads took of the processor in a step: on a machine that others use as well
it says more, of work that does not wait. With ``BETS_PROCESSOR`` set SECONDS are of that time as well.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
import time
from pathlib import Path
from typing import Any


class Clock:
    def __init__(self, seconds: float, warmup: int) -> None:
        self.seconds, self.warmup = seconds, warmup
        self.began = self.start = self.processor = 0.0
        self.passed = 0
        self.early: list[tuple[float, float]] = []  # clock and processor time of the steps passed over
        self.times: list[float] = []

    @staticmethod
    def now() -> float:
        return time.process_time() if os.environ.get("BETS_PROCESSOR") else time.perf_counter()

    def step(self) -> None:
        import torch

        now = self.now()
        if not self.began:
            self.began = now
        self.passed += 1
        if not self.start:
            if self.passed > self.warmup:
                self.early.append((now, time.process_time()))
            if self.passed > self.warmup and now - self.began > self.seconds / 2:
                wait(torch)
                self.start = self.now()
                self.processor = time.process_time()
                self.times = [self.start]
            return
        self.times.append(now)
        if now - self.start > self.seconds and len(self.times) > 3:
            self.end()

    def ended_early(self) -> None:
        """The script is over, and counting has not begun. Its queue on the device is as long at the first of
        these steps as it can get, so a wait at the end alone does not make them longer."""
        kept = self.early[len(self.early) // 2 :]
        if len(kept) > 3:
            self.start, self.processor = kept[0]
            self.times = [at for at, _ in kept]
            self.end()

    def end(self) -> None:
        import torch

        wait(torch)
        end = self.now()
        count = len(self.times) - 1
        if count > 0:
            each = [1e3 * (b - a) for a, b in zip(self.times, self.times[1:], strict=False)]
            found = {"steps": count, "mean_ms": 1e3 * (end - self.start) / count, "times_ms": each}
            found["cpu_ms"] = 1e3 * (time.process_time() - self.processor) / count
            print(json.dumps(found), file=sys.stderr, flush=True)
        os._exit(0)


def wait(torch: Any) -> None:
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.synchronize()


def main() -> None:
    clock = Clock(float(sys.argv[1]), int(sys.argv[2]))
    script = sys.argv[3]
    sys.argv = sys.argv[3:]
    sys.path[0] = str(Path(script).resolve().parent)
    import torch
    from torch.optim.optimizer import register_optimizer_step_post_hook

    sys.stdin.readline()  # whoever started this says when
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    made: list[bool] = []
    register_optimizer_step_post_hook(lambda *_: (made.append(True) if not made else None, clock.step())[1])
    inside = [0]

    def before(*_: Any) -> None:
        inside[0] += 1

    def after(*_: Any) -> None:
        inside[0] -= 1
        # Training scripts call models several times a step; only where nothing trains is a call a step.
        if inside[0] == 0 and not made and not torch.is_grad_enabled():
            clock.step()

    if os.environ.get("BETS_FORWARDS"):
        torch.nn.modules.module.register_module_forward_pre_hook(before)
        torch.nn.modules.module.register_module_forward_hook(after)
    try:
        runpy.run_path(script, run_name="__main__")
    finally:
        if clock.start:
            clock.end()
        else:
            clock.ended_early()


if __name__ == "__main__":
    main()
