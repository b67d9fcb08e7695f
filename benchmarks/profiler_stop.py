"""What torch's profiler itself costs once a recording is over, by what it is asked to keep.

    python benchmarks/profiler_stop.py [--steps 60] [--rounds 3]

For each setting, in a process of its own: processor seconds of stop, of writing the Chrome trace, and of
reading from ``events()`` what of it is in the trace too; and the memory that stop adds. Medians of the
rounds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys

SETTINGS = {
    "as the runner asks": "shapes, memory, trace_only",
    "with events()": "shapes, memory",
    "without memory": "shapes, trace_only",
    "without shapes": "memory, trace_only",
}
MEASURE = """
import json, os, resource, sys, tempfile, time
os.environ["KINETO_LOG_LEVEL"] = "99"
import torch
from torch._C._profiler import _ExperimentalConfig
from torch.autograd import (
    ProfilerActivity, ProfilerConfig, ProfilerState, _disable_profiler, _enable_profiler, _prepare_profiler
)
asked = sys.argv[2]
torch.set_num_threads(1)
net = torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU()) for _ in range(16)))
optimizer = torch.optim.AdamW(net.parameters(), foreach=False)
x = torch.randn(32, 64)
extra = _ExperimentalConfig(**({"trace_only": True} if "trace_only" in asked else {}))
shapes, memory = "shapes" in asked, "memory" in asked
config = ProfilerConfig(ProfilerState.KINETO, shapes, memory, False, False, False, extra)
_prepare_profiler(config, {ProfilerActivity.CPU})
_enable_profiler(config, {ProfilerActivity.CPU})
for _ in range(int(sys.argv[1])):
    optimizer.zero_grad()
    net(x).square().mean().backward()
    optimizer.step()

def spent(work):
    begin, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = work()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return result, time.process_time() - begin, grown / 1024

result, stop_s, stop_mb = spent(_disable_profiler)
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "trace.json")
    _, save_s, _ = spent(lambda: result.save(path))
    count = open(path).read().count('"ph"')

def read():
    return [
        (one.name(), one.start_ns(), one.end_ns(), one.start_thread_id(), one.correlation_id(),
         one.linked_correlation_id(), one.sequence_nr(), one.fwd_thread_id(), one.device_type(),
         one.device_index(), one.device_resource_id(), one.shapes(), one.dtypes(), one.concrete_inputs())
        for one in result.events()
    ]

events_s = 0.0 if "trace_only" in asked else spent(read)[1]
print(json.dumps([count, stop_s, save_s, events_s, stop_mb]))
"""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=60, help="of about 2,600 events")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print("| recording | events | stop, CPU s | write, CPU s | events() read, CPU s | stop, MB |")
    print("|---|--:|--:|--:|--:|--:|")
    for name, asked in SETTINGS.items():
        command = [sys.executable, "-c", MEASURE, str(options.steps), asked]
        rounds = []
        for _ in range(options.rounds):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:  # "trace_only" before torch 2.13
                print(f"| {name} | {done.stderr.strip().splitlines()[-1]} |")
                break
            rounds.append(json.loads(done.stdout.splitlines()[-1]))
        else:
            count, *rest = (statistics.median(column) for column in zip(*rounds, strict=True))
            print(
                f"| {name} | {count:,.0f} | " + " | ".join(f"{value:.2f}" for value in rest) + " |",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
